// tests/cpp/copy_test.cpp: host copies of any layout equal an element-by-element copy, compact, aligned,
// owned and writable.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#if defined(__GLIBC__)
#include <dlfcn.h>
#include <pthread.h>
#include <sys/sysinfo.h>

#include <cerrno>
#endif

#include <tenon/memory/copy.hpp>

#include "../../src/memory/copy_plan.hpp"

#include "support.hpp"

namespace {
/// What this test program pretends about threads, and what it saw of them.
thread_local int processors = -1;       // negative: those there are
thread_local int threads_allowed = -1;  // negative: any number
thread_local int threads_started = 0;
}  // namespace

#if defined(__GLIBC__)
// Starting threads and counting processors go through these two in the whole test program.
extern "C" {
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): glibc's are reserved
__attribute__((visibility("default"))) int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                                          void* (*run)(void*), void* argument) noexcept {
    if (threads_allowed == 0) return EAGAIN;
    if (threads_allowed > 0) --threads_allowed;
    ++threads_started;
    static const auto next = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
    return next(thread, attributes, run, argument);
}
__attribute__((visibility("default"))) int get_nprocs() noexcept {
    if (processors >= 0) return processors;
    static const auto next = reinterpret_cast<decltype(&get_nprocs)>(dlsym(RTLD_NEXT, "get_nprocs"));
    return next();
}
}
#endif

namespace {

using namespace tenon_test;
using tenon::copy_to_host;
using tenon::dtype;
using tenon::errc;
namespace abi = tenon::abi;
namespace tc = tenon::abi::type_code;
namespace dc = tenon::abi::device_code;

std::vector<std::byte> numbered_bytes(std::size_t n) {
    std::vector<std::byte> v(n);
    for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<std::byte>((i * 131 + i / 251) & 0xff);
    return v;
}

/// What a copy must contain, one element at a time.
std::vector<std::byte> copied_naively(const tenon::tensor_ref& t) {
    std::vector<std::byte> out;
    const std::int64_t item = t.itemsize();
    ints index(static_cast<std::size_t>(t.ndim()), 0);
    for (std::int64_t n = 0; n < t.size(); ++n) {
        std::int64_t offset = 0;
        for (std::size_t i = 0; i < index.size(); ++i)
            if (t.shape(i) > 1) offset += index[i] * t.stride(i);
        const auto* from = static_cast<const std::byte*>(t.data()) + offset * item;
        out.insert(out.end(), from, from + item);
        for (std::size_t axis = index.size(); axis-- > 0;) {
            if (++index[axis] < t.shape(axis)) break;
            index[axis] = 0;
        }
    }
    return out;
}

void expect_good_copy(const tenon::tensor& from) {
    const auto copy = copy_to_host(from);
    ASSERT_TRUE(copy) << copy.error();
    EXPECT_EQ(to_ints(copy->shape()), to_ints(from.shape()));
    EXPECT_EQ(copy->dtype(), from.dtype());
    EXPECT_EQ(copy->device(), tenon::device{});
    EXPECT_TRUE(copy->is_c_contiguous());
    EXPECT_TRUE(copy->is_aligned_to(64));
    EXPECT_TRUE(copy->is_copied());
    EXPECT_FALSE(copy->is_read_only());
    EXPECT_EQ(copy->byte_offset(), 0U);
    EXPECT_EQ(copy->size(), from.size());
    EXPECT_EQ(copy->nbytes(), from.nbytes());
    const auto wanted = copied_naively(from);
    ASSERT_EQ(copy->nbytes(), static_cast<std::int64_t>(wanted.size()));
    if (!wanted.empty()) {
        EXPECT_NE(copy->data(), from.data());
        EXPECT_EQ(std::memcmp(copy->data(), wanted.data(), wanted.size()), 0);
        std::memset(copy->data(), 0, wanted.size());  // all of it is ours to write
    }
}

TEST(Copy, RandomLayouts) {
    std::mt19937_64 rng(10);
    const auto draw = [&](std::int64_t from, std::int64_t to) {
        return std::uniform_int_distribution<std::int64_t>(from, to)(rng);
    };
    auto memory = numbered_bytes(1 << 16);
    for (int round = 0; round < 3000; ++round) {
        const auto rank = static_cast<std::size_t>(draw(0, 6));
        static constexpr dtype types[] = {
            {tc::uint, 8}, {tc::int_, 16}, {tc::float_, 32}, {tc::float_, 64}, {tc::complex, 128}};
        const auto item = static_cast<std::int64_t>(types[round % 5].itemsize());
        ints shape(rank);
        ints strides(rank);
        for (std::size_t i = 0; i < rank; ++i) {
            shape[i] = draw(0, 15) == 0 ? 0 : draw(1, 4);
            strides[i] = draw(-80, 80);
        }
        if (round % 3 == 0) {  // compact inner axes, perhaps permuted outside
            tenon::fill_row_major(shape, strides.data());
            if (rank >= 2 && round % 2 == 0) {
                std::swap(shape[0], shape[1]);
                std::swap(strides[0], strides[1]);
            }
        }
        if (rank > 0 && round % 7 == 0) {  // an axis of one element may say anything
            const auto axis = static_cast<std::size_t>(draw(0, static_cast<std::int64_t>(rank) - 1));
            shape[axis] = 1;
            strides[axis] = round % 2 == 0 ? int64_highest : int64_lowest;
        }
        const std::int64_t middle = 32768 / item * item;
        const auto t = import({.data = memory.data() + middle,
                               .shape = shape,
                               .strides = strides,
                               .type = types[round % 5],
                               .flags = static_cast<std::uint64_t>(round % 2)});
        ASSERT_TRUE(t) << t.error();
        ASSERT_NO_FATAL_FAILURE(expect_good_copy(*t))
            << testing::PrintToString(shape) << testing::PrintToString(strides);
        if (testing::Test::HasFailure())
            FAIL() << testing::PrintToString(shape) << testing::PrintToString(strides);
    }
}

TEST(Copy, SingleElementAxesWithWildStridesBetweenOthers) {
    auto memory = numbered_bytes(4096);
    for (const std::int64_t odd : {int64_highest, int64_lowest, std::int64_t{-1}})
        for (const std::int64_t direction : {1, -1})
            expect_good_copy(made({.data = memory.data() + 2048,
                                   .shape = {2, 1, 3},
                                   .strides = ints{10 * direction, odd, 2 * direction}}));
}

TEST(Copy, MisalignedSource) {
    auto memory = numbered_bytes(256);
    expect_good_copy(made({.data = memory.data() + 1, .shape = {3, 4}, .strides = ints{1, 3}}));
    expect_good_copy(made({.data = memory.data() + 1, .shape = {3, 4}, .byte_offset = 2}));
}

TEST(Copy, ReadsNothingBeyondTheElements) {
    const page_end page;
    // Two rows with a gap after each; the last row ends where the page does.
    auto* last = static_cast<std::byte*>(page.last(std::size_t{5} * 4));
    expect_good_copy(made({.data = last, .shape = {2, 2}, .strides = ints{3, 1}}));
    expect_good_copy(made({.data = page.last(4), .shape = {5}, .strides = ints{-1}}));
    expect_good_copy(made({.data = page.last(4)}));
    expect_good_copy(made({.data = page.last(4), .shape = {3, 3}, .strides = ints{0, 0}}));
}

TEST(Copy, ScalarsAndEmptyOnes) {
    float x = 3.5F;
    expect_good_copy(made({.data = &x}));
    expect_good_copy(made({.data = nullptr, .shape = {0}}));
    expect_good_copy(made({.data = nullptr, .shape = {3, 0, 2}, .byte_offset = 64}));
    expect_good_copy(made(
        {.data = nullptr, .shape = {int64_highest / 4, 0}, .strides = ints{int64_highest, int64_lowest}}));
}

TEST(Copy, EveryRank) {
    auto memory = numbered_bytes(64);
    for (std::size_t rank = 0; rank <= 64; ++rank) {
        ints shape(rank, 1);
        ints strides(rank, 3);
        if (rank > 0) shape.front() = 2;
        if (rank > 1) shape.back() = 2, strides.back() = 5;
        expect_good_copy(made({.data = memory.data(), .shape = shape, .strides = strides}));
    }
}

TEST(Copy, OutlivesItsSource) {
    std::vector<float> copied;
    {
        auto source = std::make_unique<std::vector<float>>(8, 2.5F);
        auto t = std::make_unique<tenon::tensor>(made(spec_of(*source, {2, 4})));
        const auto copy = copy_to_host(*t);
        ASSERT_TRUE(copy);
        t.reset();
        source.reset();
        EXPECT_EQ(to_ints(copy->shape()), (ints{2, 4}));
        const auto* first = static_cast<const float*>(copy->data());
        copied.assign(first, first + 8);
    }
    EXPECT_EQ(copied, std::vector<float>(8, 2.5F));
}

TEST(Copy, PackedSubByteElements) {
    auto memory = numbered_bytes(64);
    for (const dtype type : {dtype{tc::float4_e2m1fn, 4}, dtype{tc::float6_e2m3fn, 6}, dtype{tc::int_, 2}}) {
        const auto t = made({.data = memory.data(), .shape = {3, 5}, .type = type});
        const auto copy = copy_to_host(t);
        ASSERT_TRUE(copy) << copy.error();
        EXPECT_EQ(copy->nbytes(), t.nbytes());
        EXPECT_EQ(std::memcmp(copy->data(), memory.data(), static_cast<std::size_t>(t.nbytes())), 0);
        EXPECT_EQ(copy->dtype(), type);
        EXPECT_FALSE(copy->is_subbyte_padded());
        expect_error(
            copy_to_host(made({.data = memory.data(), .shape = {3, 5}, .strides = ints{1, 3}, .type = type})),
            errc::refused, "strides");
        const auto empty = copy_to_host(made({.data = nullptr, .shape = {3, 0}, .type = type}));
        ASSERT_TRUE(empty);
        EXPECT_EQ(empty->nbytes(), 0);
    }
    // Three of them are two bytes: the third byte is not read.
    const page_end page;
    EXPECT_TRUE(copy_to_host(made({.data = page.last(2), .shape = {3}, .type = {tc::float4_e2m1fn, 4}})));
}

TEST(Copy, PaddedSubByteElementsAnyLayout) {
    auto memory = numbered_bytes(64);
    const auto t = made({.data = memory.data(),
                         .shape = {3, 5},
                         .strides = ints{1, 3},
                         .type = {tc::float4_e2m1fn, 4},
                         .flags = abi::flag::subbyte_padded});
    expect_good_copy(t);
    EXPECT_TRUE(copy_to_host(t)->is_subbyte_padded());
}

TEST(Copy, ElementTypesWithoutANameAreCarried) {
    auto memory = numbered_bytes(256);
    const auto t = made({.data = memory.data(), .shape = {3, 2}, .strides = ints{1, 3}, .type = {99, 24, 2}});
    expect_good_copy(t);
}

TEST(Copy, PinnedAndManagedBecomePlain) {
    auto memory = numbered_bytes(64);
    for (const auto kind : {dc::cuda_host, dc::rocm_host, dc::cuda_managed})
        expect_good_copy(made({.data = memory.data(), .shape = {4}, .where = {kind, 0}}));
}

TEST(Copy, AcceleratorMemoryIsNotTouched) {
    for (const auto kind : {dc::cuda, dc::rocm, dc::metal, dc::vulkan}) {
        const auto copy = copy_to_host(made({.data = address(0x1000), .shape = {4}, .where = {kind, 0}}));
        expect_error(copy, errc::refused, "device");
        EXPECT_EQ(copy.error().got, kind);
    }
}

TEST(Copy, EveryItemSize) {
    auto memory = numbered_bytes(1 << 14);
    for (std::uint16_t bytes = 1; bytes <= 40; ++bytes)
        for (const ints& strides :
             {ints{12, 3, 1}, ints{1, 4, 12}, ints{-12, 3, -1}, ints{0, 3, 1}, ints{12, 0, 2}})
            expect_good_copy(made({.data = memory.data() + 4096,
                                   .shape = {4, 4, 3},
                                   .strides = strides,
                                   .type = {tc::uint, 8, bytes}}));
}

TEST(Copy, PaddedElementsOfEverySubByteType) {
    auto memory = numbered_bytes(4096);
    for (const dtype type :
         {dtype{tc::float6_e2m3fn, 6}, dtype{tc::float6_e3m2fn, 6}, dtype{tc::float4_e2m1fn, 4},
          dtype{tc::int_, 2}, dtype{tc::uint, 1}, dtype{tc::int_, 12}, dtype{tc::uint, 4, 3}})
        for (const ints& strides : {ints{5, 1}, ints{1, 3}, ints{-5, -1}, ints{0, 7}}) {
            const auto t = made({.data = memory.data() + 1024,
                                 .shape = {3, 5},
                                 .strides = strides,
                                 .type = type,
                                 .flags = abi::flag::subbyte_padded});
            expect_good_copy(t);
            EXPECT_TRUE(copy_to_host(t)->is_subbyte_padded());
        }
}

TEST(Copy, AxesThatFollowOnOneAnother) {
    // Every way to join, or not to join, neighbouring axes: compact, reversed, broadcast, with gaps, and with
    // axes of one element between.
    auto memory = numbered_bytes(1 << 14);
    const std::vector<ints> steps = {{24, 6, 2, 1},  {-24, -6, -2, -1}, {0, 0, 0, 0},   {0, 0, 2, 1},
                                     {24, 6, 0, 0},  {0, 6, 2, 1},      {48, 12, 4, 2}, {50, 12, 4, 2},
                                     {48, 12, 5, 2}, {24, 6, -2, 1},    {24, -6, 2, 1}, {1, 2, 6, 24}};
    for (const ints& strides : steps) {
        expect_good_copy(made({.data = memory.data() + 8192, .shape = {2, 4, 3, 2}, .strides = strides}));
        ints shape;
        ints apart;
        for (std::size_t i = 0; i < 4; ++i) {
            shape.push_back(ints{2, 4, 3, 2}[i]);
            apart.push_back(strides[i]);
            shape.push_back(1);
            apart.push_back(i % 2 == 0 ? 12345 : int64_lowest);
        }
        expect_good_copy(made({.data = memory.data() + 8192, .shape = shape, .strides = apart}));
    }
}

TEST(CopyPlan, AnyRangeOfElements) {
    // What the threads share out: pieces that begin and end anywhere give what the whole gives.
    auto memory = numbered_bytes(4096);
    for (const ints& strides : {ints{20, 5, 1}, ints{1, 3, 12}, ints{-40, 0, 3}}) {
        const auto t = made(
            {.data = memory.data() + 2048, .shape = {3, 4, 5}, .strides = strides, .type = {tc::int_, 16}});
        const auto wanted = copied_naively(t);
        const tenon::detail::copy_plan plan(t);
        for (std::int64_t first = 0; first <= 60; ++first)
            for (std::int64_t end = first; end <= 60; ++end) {
                std::vector<std::byte> out(wanted.size(), std::byte{0xee});
                plan.copy(first, end, out.data());
                auto expected = wanted;
                std::fill(expected.begin(), expected.begin() + first * 2, std::byte{0xee});
                std::fill(expected.begin() + end * 2, expected.end(), std::byte{0xee});
                ASSERT_EQ(out, expected) << first << " to " << end;
            }
    }
}

// --- several threads --------------------------------------------------------------------------------

/// Pretends a number of processors, and limits the threads that can be started.
class Threads : public testing::Test {
protected:
    void SetUp() override {
#if !defined(__GLIBC__)
        GTEST_SKIP() << "threads cannot be stood in for here";
#endif
        threads_started = 0;
    }
    void TearDown() override { processors = threads_allowed = -1; }

    /// The copy and the number of threads it took, beside this one.
    static int expect_same(const tenon::tensor& t) { return expect_same(t, copied_quickly(t)); }
    static int expect_same(const tenon::tensor& t, const std::vector<std::byte>& wanted) {
        const int before = threads_started;
        const auto copy = copy_to_host(t);
        EXPECT_TRUE(copy) << copy.error();
        if (!copy) return -1;
        EXPECT_EQ(copy->nbytes(), static_cast<std::int64_t>(wanted.size()));
        EXPECT_EQ(std::memcmp(copy->data(), wanted.data(), wanted.size()), 0);
        return threads_started - before;
    }
    /// `copied_naively`, but row by row where they are compact.
    static std::vector<std::byte> copied_quickly(const tenon::tensor_ref& t) {
        const auto item = static_cast<std::size_t>(t.itemsize());
        std::vector<std::byte> out(static_cast<std::size_t>(t.nbytes()));
        std::byte* to = out.data();
        const auto walk = [&](auto& self, std::size_t axis, const std::byte* from) -> void {
            if (axis == static_cast<std::size_t>(t.ndim())) {
                std::memcpy(to, from, item);
                to += item;
                return;
            }
            if (axis + 1 == static_cast<std::size_t>(t.ndim()) && t.stride(axis) == 1) {
                const std::size_t row = item * static_cast<std::size_t>(t.shape(axis));
                std::memcpy(to, from, row);
                to += row;
                return;
            }
            for (std::int64_t i = 0; i < t.shape(axis); ++i)
                self(self, axis + 1, from + i * t.stride(axis) * t.itemsize());
        };
        walk(walk, 0, static_cast<const std::byte*>(t.data()));
        return out;
    }
};

/// A layout over memory that is large enough for all of them, from the middle.
tenon::tensor big(const ints& shape, const ints& strides, dtype type) {
    static auto words = [] {
        std::vector<std::uint64_t> w((std::size_t{48} << 20U) / 8);  // no two pieces of it are alike
        for (std::size_t i = 0; i < w.size(); ++i) w[i] = i * 0x9e3779b97f4a7c15U;
        return w;
    }();
    auto* const memory = reinterpret_cast<std::byte*>(words.data());
    std::int64_t low = 0;
    std::int64_t high = 1;
    for (std::size_t i = 0; i < shape.size(); ++i)
        (strides[i] < 0 ? low : high) += (shape[i] - 1) * strides[i];
    const auto first = static_cast<std::size_t>(-low * type.itemsize());
    if (first + static_cast<std::size_t>(high * type.itemsize()) > words.size() * 8)
        throw std::out_of_range("memory");
    return made({.data = memory + first, .shape = shape, .strides = strides, .type = type});
}

TEST_F(Threads, GiveWhatOneGives) {
    const struct {
        ints shape, strides;
        dtype type;
    } layouts[] = {
        {{33 << 20}, {1}, {tc::uint, 8}},
        {{(33 << 20) + 13}, {1}, {tc::uint, 8}},
        {{1000, 2200}, {2200, 1}, {tc::complex, 128}},
        {{1000, 2200}, {2700, 1}, {tc::complex, 128}},
        {{1000, 2200}, {1, 1000}, {tc::complex, 128}},
        {{1000, 2200}, {-2200, -1}, {tc::complex, 128}},
        {{1000, 4400}, {0, 1}, {tc::float_, 64}},
        {{1000, 4400}, {1, 0}, {tc::float_, 64}},
        {{7, 11, 13, 2200}, {1, 7, -77, 1001}, {tc::complex, 128}},
        {{340000, 5}, {5, -1}, {tc::uint, 8, 21}},
        {{1500000, 2}, {1, 1500000}, {tc::uint, 8, 12}},
    };
    for (const auto& layout : layouts) {
        SCOPED_TRACE(testing::PrintToString(layout.shape) + testing::PrintToString(layout.strides));
        const auto t = big(layout.shape, layout.strides, layout.type);
        const auto wanted = copied_quickly(t);
        for (const int n : {8, 3, 1}) {
            processors = n;
            EXPECT_EQ(expect_same(t, wanted), n - 1) << "beside this one";
        }
    }
}

TEST_F(Threads, NoneForWhatIsSmall) {
    processors = 8;
    EXPECT_EQ(expect_same(big({1 << 20}, {1}, {tc::uint, 8})), 0);
    EXPECT_EQ(expect_same(big({2 * tenon::detail::bytes_per_thread - 1}, {1}, {tc::uint, 8})), 0);
    EXPECT_EQ(expect_same(big({2 * tenon::detail::bytes_per_thread}, {1}, {tc::uint, 8})), 1);
}

TEST_F(Threads, NeverMoreThanEight) {
    processors = 1000;
    EXPECT_EQ(expect_same(big({47 << 20}, {1}, {tc::uint, 8})), 7);
}

TEST_F(Threads, ThatCannotBeStartedAreDoneWithout) {
    const auto t = big({1000, 2200}, {1, 1000}, {tc::complex, 128});
    const auto wanted = copied_quickly(t);
    for (int allowed = 0; allowed <= 7; ++allowed) {
        SCOPED_TRACE(allowed);
        processors = 8;
        threads_allowed = allowed;
        EXPECT_EQ(expect_same(t, wanted), allowed);
    }
}

/// `hardware_concurrency` may answer 0, "not known".
TEST_F(Threads, UnknownNumberOfProcessors) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(
        {
            processors = 0;
            for (const std::int64_t n : {64, 20 << 20}) {
                const auto t = big({n}, {1}, {tc::uint, 8});
                const auto copy = copy_to_host(t);
                if (!copy || std::memcmp(copy->data(), t.data(), static_cast<std::size_t>(n)) != 0)
                    std::_Exit(1);
            }
            std::_Exit(0);
        },
        testing::ExitedWithCode(0), "");
}

// --- the watch --------------------------------------------------------------------------------------

struct patience {
    int looks = 0;
    int enough = -1;  // after so many it is given up
    [[nodiscard]] tenon::copy_watch watch() {
        return {[](void* p) noexcept {
                    auto* me = static_cast<patience*>(p);
                    return ++me->looks != me->enough;
                },
                this};
    }
};

/// `looks` times what is copied between two looks, and `more` bytes; hardly any of it takes memory.
tenon::tensor watched(std::int64_t looks, std::int64_t more) {
    static auto row = numbered_bytes(1 << 12);
    const std::int64_t rows = (looks * tenon::detail::bytes_per_look + more) >> 12;
    return made({.data = row.data(), .shape = {rows, 1 << 12}, .strides = ints{0, 1}, .type = {tc::uint, 8}});
}

TEST(CopyWatch, IsNotAskedForLittle) {
    for (const std::int64_t missing : {1 << 12, 0}) {
        patience p{.enough = 1};
        EXPECT_TRUE(copy_to_host(watched(1, -missing), p.watch()));
        EXPECT_EQ(p.looks, 0);
    }
}

TEST(CopyWatch, IsAskedBetweenThePieces) {
    patience p;
    const auto copy = copy_to_host(watched(2, 1 << 12), p.watch());
    ASSERT_TRUE(copy);
    EXPECT_EQ(p.looks, 2);
    const auto* bytes = static_cast<const std::byte*>(copy->data());
    for (const std::int64_t row : {std::int64_t{0}, copy->shape(0) / 2, copy->shape(0) - 1})
        EXPECT_EQ(std::memcmp(bytes + row * 4096, bytes, 4096), 0) << row;
    EXPECT_TRUE(copy->is_copied());
}

TEST(CopyWatch, GivesUpHalfWay) {
    for (const int enough : {1, 2}) {
        patience p{.enough = enough};
        const auto copy = copy_to_host(watched(2, 1 << 12), p.watch());  // a leak is the sanitizer's to see
        expect_error(copy, errc::refused, "copy");
        EXPECT_EQ(p.looks, enough);
    }
}

TEST(CopyWatch, AbsentOneLetsEverythingPass) { EXPECT_TRUE(copy_to_host(watched(1, 1 << 12))); }

}  // namespace
