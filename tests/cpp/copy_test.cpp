// tests/cpp/copy_test.cpp: host copies of any layout equal an element-by-element copy, compact, aligned,
// owned and writable.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <tenon/core/copy.hpp>

#include "support.hpp"

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
    expect_good_copy(made({.data = nullptr,
                           .shape = {int64_highest, 0, int64_highest},
                           .strides = ints{int64_highest, int64_lowest, 0}}));
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
    const auto t = made({.data = memory.data(), .shape = {3, 2}, .strides = ints{1, 3}, .type = {99, 24, 2}},
                        {.allow_unknown = true});
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

}  // namespace
