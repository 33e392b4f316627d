// tests/cpp/out_of_memory_test.cpp: when an allocation fails, the caller hears it, every struct stays where
// it was, and what was to be owned is given back.

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include <tenon/memory/allocate.hpp>
#include <tenon/memory/copy.hpp>
#include <tenon/tensor/managed.hpp>
#include <tenon/tensor/tensor.hpp>

#include "allocations.hpp"
#include "support.hpp"

namespace {
bool allocation_fails() {
    if (tenon_test::allocations_left > 0)
        --tenon_test::allocations_left;
    else if (tenon_test::allocations_left == 0)
        return true;
    return false;
}
}  // namespace

#if TENON_TEST_SEES_MALLOC
// Everything ends here: `new` of every kind, and the managed structs.
extern "C" {
void* __libc_malloc(std::size_t size);                           // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(std::size_t alignment, std::size_t size);  // NOLINT(bugprone-reserved-identifier)
__attribute__((visibility("default"))) void* malloc(std::size_t size) noexcept {
    ++tenon_test::allocations_made;
    return allocation_fails() ? nullptr : __libc_malloc(size);
}
__attribute__((visibility("default"))) void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
    ++tenon_test::allocations_made;
    return allocation_fails() ? nullptr : __libc_memalign(alignment, size);
}
// Aligned `new` of other builds of the C++ library ends in one of these two.
__attribute__((visibility("default"))) void* memalign(std::size_t alignment, std::size_t size) noexcept {
    return aligned_alloc(alignment, size);
}
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): glibc's are reserved
__attribute__((visibility("default"))) int posix_memalign(void** out, std::size_t alignment,
                                                          std::size_t size) noexcept {
    *out = aligned_alloc(alignment, size);
    return *out != nullptr ? 0 : ENOMEM;
}
}
#else
// The allocation functions of C++ that the core uses, replaced for the whole test program: they fail on
// demand and otherwise hand on to the ordinary ones, so that the ordinary delete fits.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    if (allocation_fails()) return nullptr;
    try {
        return ::operator new(size);
    } catch (...) {
        return nullptr;
    }
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
    if (allocation_fails()) return nullptr;
    try {
        return ::operator new[](size);
    } catch (...) {
        return nullptr;
    }
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
    if (allocation_fails()) return nullptr;
    try {
        return ::operator new(size, alignment);
    } catch (...) {
        return nullptr;
    }
}
#endif

namespace {

using namespace tenon_test;
using tenon::errc;
using tenon::keep_alive;
using tenon::tensor;
using tenon::tensor_info;
namespace abi = tenon::abi;

float memory[8];

/// Somebody may look: allocations that nobody sees may be left out by the compiler.
void escape(const void* seen) {
    [[maybe_unused]] static const void* volatile last;
    last = seen;
}

/// Runs `attempt` with 0, 1, 2... allocations until it succeeds, and says how many it took. In between it
/// must say that there is no memory, and `after_failure` must hold.
template <class Attempt, class After>
int allocations_needed(Attempt&& attempt, After&& after_failure) {
    for (int n = 0; n < 20; ++n) {
        SCOPED_TRACE(n);
        auto made = [&] {
            const only_allocations few(n);
            return attempt();
        }();
        escape(&made);
        if (made) return n;
        EXPECT_EQ(made.error().code, errc::no_memory) << made.error();
        after_failure();
        if (testing::Test::HasFailure()) return -1;
    }
    return -1;
}
template <class Attempt>
int allocations_needed(Attempt&& attempt) {
    return allocations_needed(attempt, [] {});
}

// --- importing --------------------------------------------------------------------------------------

TEST(OutOfMemory, TakingLeavesTheStructWithForeign) {
    fake_versioned producer({.data = memory, .shape = ints(6, 1)});
    {
        tenon::foreign received(&producer.managed);
        const int needed = allocations_needed([&] { return tensor::take(received); },
                                              [&] {
                                                  EXPECT_TRUE(received);
                                                  EXPECT_EQ(producer.releases(), 0);
                                              });
        EXPECT_EQ(needed, 1);
    }
    EXPECT_EQ(producer.releases(), 1);
}

TEST(OutOfMemory, SmallRanksNeedNone) {
    for (std::size_t rank = 0; rank <= 5; ++rank) {
        const spec said{.data = memory, .shape = ints(rank, 1)};
        fake_versioned producer(said);
        tenon::foreign received(&producer.managed);
        EXPECT_EQ(allocations_needed([&] { return tensor::take(received); }), 0) << rank;
    }
}

TEST(OutOfMemory, KeepingLeavesTheOwner) {
    static int calls;
    calls = 0;
    const auto source = made({.data = memory, .shape = ints(9, 1)});
    {
        keep_alive owner(&calls, [](void*, void*) noexcept { ++calls; });
        std::optional<tensor> kept;
        const int needed = allocations_needed([&] { return tensor::keep(source, owner, kept); },
                                              [&] {
                                                  EXPECT_FALSE(kept);
                                                  EXPECT_EQ(calls, 0);
                                              });
        EXPECT_EQ(needed, 1);
        EXPECT_TRUE(kept);
    }
    EXPECT_EQ(calls, 1);
}

// --- owning -----------------------------------------------------------------------------------------

/// Something that was moved along and is alive as often as it is held.
struct held_object {
    std::shared_ptr<int> held;
};

TEST(OutOfMemory, OwningAnObjectReleasesIt) {
    const auto held = std::make_shared<int>(0);
    for (const std::size_t rank : {std::size_t{2}, std::size_t{6}}) {
        auto info = tensor_info::contiguous(memory, ints(rank, 1));
        const auto released = [&] { EXPECT_EQ(held.use_count(), 1); };
        EXPECT_EQ(allocations_needed([&] { return tensor::own(held_object{held}, info); }, released),
                  rank > 5 ? 2 : 1);
        EXPECT_EQ(
            allocations_needed(
                [&] { return tensor::own(held_object{held}, [&](held_object&) { return info; }); }, released),
            rank > 5 ? 2 : 1);
        released();
    }
}

TEST(OutOfMemory, OwningWithADeleterRunsIt) {
    float x = 0;
    for (const std::size_t rank : {std::size_t{2}, std::size_t{6}}) {
        const auto info = tensor_info::contiguous(&x, ints(rank, 1));
        static int calls;
        static int expected;
        calls = expected = 0;
        const auto once_more = [] { EXPECT_EQ(calls, ++expected); };
        const int stateful =
            allocations_needed([&] { return tensor::own(info, [n = 1](void*) { calls += n; }); }, once_more);
        once_more();
        EXPECT_EQ(stateful, rank > 5 ? 2 : 1);
        const int stateless =
            allocations_needed([&] { return tensor::own(info, [](void*) { ++calls; }); }, once_more);
        once_more();
        EXPECT_EQ(stateless, rank > 5 ? 1 : 0) << "a deleter without state is not kept anywhere";
    }
}

TEST(OutOfMemory, OwningASharedPtrLetsGo) {
    const std::shared_ptr<float[]> p(new float[2]{});
    EXPECT_EQ(allocations_needed([&] { return tensor::own(p, 2); }, [&] { EXPECT_EQ(p.use_count(), 1); }), 1);
    EXPECT_EQ(p.use_count(), 1);
}

TEST(OutOfMemory, OwningAUniquePtrReleasesIt) {
    static int calls;
    calls = 0;
    struct stateless {
        // NOLINTNEXTLINE(readability-non-const-parameter): as deleters have it
        void operator()(float* p) const { ++calls, delete[] p; }
    };
    struct stateful {
        int by;
        // NOLINTNEXTLINE(readability-non-const-parameter): as deleters have it
        void operator()(float* p) const { calls += by, delete[] p; }
    };
    const ints high_rank(6, 1);
    int tries = 0;
    for (int n = 0;; ++n) {
        ASSERT_LT(n, 10);
        std::unique_ptr<float[], stateful> p(new float[1], {1});
        ++tries;
        const bool ok = [&] {
            const only_allocations few(n);
            return tensor::own(std::move(p), high_rank).has_value();
        }();
        EXPECT_EQ(p, nullptr) << "taken in every case";  // NOLINT
        EXPECT_EQ(calls, tries) << n;
        if (ok) {
            EXPECT_EQ(n, 2);
            break;
        }
    }
    calls = tries = 0;
    for (int n = 0;; ++n) {
        ASSERT_LT(n, 10);
        std::unique_ptr<float[], stateless> p(new float[1]);
        ++tries;
        const bool ok = [&] {
            const only_allocations few(n);
            return tensor::own(std::move(p), high_rank).has_value();
        }();
        EXPECT_EQ(p, nullptr);  // NOLINT
        EXPECT_EQ(calls, tries) << n;
        if (ok) {
            EXPECT_EQ(n, 1);
            break;
        }
    }
}

/// "own() takes it in every case, and releases it at once when it fails."
TEST(OutOfMemory, OwningAVectorTakesIt) {
    const ints high_rank(6, 1);
    for (int n = 0;; ++n) {
        ASSERT_LT(n, 10);
        std::vector<float> v(1);
        const bool ok = [&] {
            const only_allocations few(n);
            return tensor::own(std::move(v), high_rank).has_value();
        }();
        EXPECT_TRUE(v.empty()) << n << " allocations";  // NOLINT: that is the question
        if (ok) {
            EXPECT_EQ(n, 2);
            break;
        }
    }
}

// --- allocating, copying ----------------------------------------------------------------------------

TEST(OutOfMemory, Allocating) {
    EXPECT_EQ(allocations_needed([] { return tenon::allocate<float>({2, 3}); }), 1);
    EXPECT_EQ(allocations_needed([] { return tenon::allocate<float>(0); }), 1);
    EXPECT_EQ(allocations_needed([] { return tenon::allocate("int8", {1, 1, 1, 1, 1, 7}); }), 3)
        << "the plan's shape, the memory, its shape";
    const auto t = [] {
        const only_allocations none(0);
        return tenon::allocate<float>({2, 3});
    }();
    expect_error(t, errc::no_memory, "data");
}

TEST(OutOfMemory, WhatIsWrongShowsBeforeThereIsNoMemory) {
    const only_allocations none(0);
    EXPECT_EQ(tenon::allocate<float>(-1).error().code, errc::malformed);
    EXPECT_EQ(tenon::allocate<float>({int64_highest, 2}).error().code, errc::malformed);
    EXPECT_EQ(tenon::allocate("float33", 1).error().code, errc::refused);
}

TEST(OutOfMemory, Copying) {
    const auto small = made({.data = memory, .shape = {8}});
    EXPECT_EQ(allocations_needed([&] { return tenon::copy_to_host(small); }), 1);
    const auto strided = made({.data = memory, .shape = {2, 2}, .strides = ints{1, 4}});
    EXPECT_EQ(allocations_needed([&] { return tenon::copy_to_host(strided); }), 1);
    const auto high = made({.data = memory, .shape = ints(7, 1)});
    EXPECT_EQ(allocations_needed([&] { return tenon::copy_to_host(high); }), 3);
    const auto empty = made({.data = nullptr, .shape = {0}});
    EXPECT_EQ(allocations_needed([&] { return tenon::copy_to_host(empty); }), 1);
}

#if TENON_TEST_SEES_MALLOC

TEST(OutOfMemory, CopyingGoesOnAloneWithoutMemoryForAThread) {
    const std::vector<std::uint8_t> source(std::size_t{40} << 20U, 3);
    const auto t = tensor::own(tensor_info::contiguous(source.data(), source.size()), keep_alive());
    ASSERT_TRUE(t);
    const auto copy = [&] {
        const only_allocations few(1);  // the copy itself, and then no thread
        return tenon::copy_to_host(*t);
    }();
    ASSERT_TRUE(copy) << copy.error();
    EXPECT_EQ(std::memcmp(copy->data(), source.data(), source.size()), 0);
}

// --- exporting --------------------------------------------------------------------------------------

template <class Managed>
class OutOfMemoryManaged : public testing::Test {};
using both = testing::Types<abi::managed_tensor, abi::managed_tensor_versioned>;
TYPED_TEST_SUITE(OutOfMemoryManaged, both);

TYPED_TEST(OutOfMemoryManaged, LeavesTheTensorAsItWas) {
    static int calls;
    for (const std::size_t rank : {std::size_t{2}, std::size_t{64}}) {
        calls = 0;
        auto t = tensor::own(tensor_info::contiguous(memory, ints(rank, 1)),
                             keep_alive(memory, [](void*, void*) noexcept { ++calls; }));
        ASSERT_TRUE(t);
        TypeParam* exported = nullptr;
        const int needed = allocations_needed(
            [&] {
                auto made = tenon::to_managed<TypeParam>(std::move(*t));
                if (made) exported = *made;
                return made;
            },
            [&] {
                EXPECT_EQ(calls, 0);
                EXPECT_EQ(t->data(), memory);
                EXPECT_EQ(to_ints(t->shape()), ints(rank, 1));
                EXPECT_NE(t->owner().release_function(), nullptr);
            });
        EXPECT_EQ(needed, 1) << "one allocation, whatever the rank";
        ASSERT_NE(exported, nullptr);
        EXPECT_EQ(calls, 0);
        exported->deleter(exported);
        EXPECT_EQ(calls, 1);
    }
}

#endif

}  // namespace
