// tests/cpp/out_of_memory_test.cpp: when an allocation fails, the caller hears it and every struct stays
// where it was.

#include <gtest/gtest.h>

#include <cstddef>
#include <new>
#include <vector>

#include <tenon/core/copy.hpp>
#include <tenon/core/tensor.hpp>

#include "support.hpp"

namespace {
/// How many more allocations succeed; negative: all.
thread_local int allocations_left = -1;

bool allocation_fails() {
    if (allocations_left > 0)
        --allocations_left;
    else if (allocations_left == 0)
        return true;
    return false;
}
}  // namespace

// The two allocation functions the core uses, replaced for the whole test program: they fail on demand and
// otherwise hand on to the ordinary ones, so that the ordinary delete fits.
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

namespace {

using namespace tenon_test;
using tenon::errc;

class OutOfMemory : public testing::Test {
protected:
    void SetUp() override { allocations_left = 0; }
    void TearDown() override { allocations_left = -1; }
};

float memory[8];

TEST_F(OutOfMemory, TakingLeavesTheStructWithForeign) {
    fake_versioned producer({.data = memory, .shape = ints(6, 1)});
    {
        tenon::foreign received(&producer.managed);
        expect_error(tenon::tensor::take(received), errc::no_memory, "shape");
        EXPECT_TRUE(received);
        EXPECT_EQ(producer.releases(), 0);
        allocations_left = -1;
        const auto t = tenon::tensor::take(received);
        ASSERT_TRUE(t) << "a second attempt may succeed";
        EXPECT_EQ(producer.releases(), 0);
    }
    EXPECT_EQ(producer.releases(), 1);
}

TEST_F(OutOfMemory, SmallRanksNeedNone) {
    for (std::size_t rank = 0; rank <= 5; ++rank)
        EXPECT_TRUE(import({.data = memory, .shape = ints(rank, 1)})) << rank;
}

TEST_F(OutOfMemory, KeepingLeavesTheOwner) {
    static int calls;
    calls = 0;
    allocations_left = -1;
    const auto source = made({.data = memory, .shape = ints(9, 1)});
    allocations_left = 0;
    {
        tenon::keep_alive owner(&calls, [](void*, void*) noexcept { ++calls; });
        std::optional<tenon::tensor> kept;
        expect_error(tenon::tensor::keep(source, owner, kept), errc::no_memory, "shape");
        EXPECT_FALSE(kept);
        EXPECT_EQ(calls, 0);
    }
    EXPECT_EQ(calls, 1);
}

TEST_F(OutOfMemory, CopyingSaysSo) {
    const auto t = made({.data = memory, .shape = {8}});
    expect_error(tenon::copy_to_host(t), errc::no_memory, "copy");
}

TEST_F(OutOfMemory, CopyIsFreedWhenItsDescriptionCannotBeKept) {
    allocations_left = -1;
    const auto t = made({.data = memory, .shape = ints(7, 1)});
    allocations_left = 1;  // the copy itself, but not its shape; the leak checker watches the copy
    expect_error(tenon::copy_to_host(t), errc::no_memory, "shape");
}

}  // namespace
