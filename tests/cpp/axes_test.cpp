// tests/cpp/axes_test.cpp: lists of extents and strides as a caller may write them, and what becomes of
// numbers and lists that do not fit.

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <memory>
#include <new>
#include <ranges>
#include <span>
#include <type_traits>
#include <vector>

#include <tenon/tensor/axes.hpp>
#include <tenon/tensor/tensor.hpp>

#include "support.hpp"

namespace {

using namespace tenon_test;
using tenon::axes;
using tenon::errc;
using tenon::tensor_info;

static_assert(std::is_convertible_v<int, axes> && std::is_convertible_v<std::vector<int>, axes>);
static_assert(!std::is_convertible_v<bool, axes> && !std::is_constructible_v<axes, int, bool>);
static_assert(!std::is_convertible_v<double, axes> && !std::is_constructible_v<axes, int, double>);
static_assert(!std::is_convertible_v<std::vector<double>, axes>);
static_assert(!std::is_convertible_v<int*, axes> && !std::is_convertible_v<std::nullptr_t, axes>);
static_assert(std::is_trivially_copyable_v<axes>);

/// As a parameter takes it.
ints listed(const axes& a) { return to_ints(a.values()); }

TEST(Axes, Braces) {
    EXPECT_EQ(listed({}), ints{});
    EXPECT_EQ(listed(7), ints{7});
    EXPECT_EQ(listed({7}), ints{7});
    EXPECT_EQ(listed({2, 3}), (ints{2, 3}));
    EXPECT_EQ(listed({0, -1, 5}), (ints{0, -1, 5}));
}

TEST(Axes, IntegersOfAnyTypeSideBySide) {
    const std::size_t rows = 4;
    const short columns = -3;
    const unsigned char depth = 200;
    EXPECT_EQ(listed({rows, columns, depth, 6LL, 7U}), (ints{4, -3, 200, 6, 7}));
}

TEST(Axes, ListsOfAnyKind) {
    EXPECT_EQ(listed(std::vector<int>{1, 2}), (ints{1, 2}));
    EXPECT_EQ(listed(std::vector<std::size_t>{1, 2}), (ints{1, 2}));
    EXPECT_EQ(listed(std::array<std::int64_t, 3>{1, -2, 3}), (ints{1, -2, 3}));
    EXPECT_EQ(listed(std::array<std::int64_t, 0>{}), ints{});
    EXPECT_EQ(listed(std::list<short>{5, 6}), (ints{5, 6}));
    const ints source{8, 9};
    EXPECT_EQ(listed(source), source);
    EXPECT_EQ(listed(std::span(source)), source);
    EXPECT_EQ(listed(tenon::extents(source)), source);
    const int plain[] = {3, 4, 5};
    EXPECT_EQ(listed(plain), (ints{3, 4, 5}));
    EXPECT_EQ(listed(source | std::views::reverse), (ints{9, 8}));
}

TEST(Axes, CopiesAreCopies) {
    axes a{1, 2, 3};
    axes b = a;
    const axes& fixed = a;
    axes c(fixed);
    a = axes{9};
    EXPECT_EQ(listed(b), (ints{1, 2, 3}));
    EXPECT_EQ(listed(c), (ints{1, 2, 3}));
    EXPECT_EQ(listed(a), ints{9});
    EXPECT_EQ(a.size(), 1U);
}

TEST(Axes, OutlivesItsSource) {
    auto source = std::make_unique<ints>(ints{4, 5});
    const axes a(*source);
    source.reset();
    EXPECT_EQ(listed(a), (ints{4, 5}));
}

TEST(Axes, EveryLengthUpToTheLimit) {
    for (std::size_t n = 0; n <= 64; ++n) {
        ints numbers(n);
        for (std::size_t i = 0; i < n; ++i) numbers[i] = static_cast<std::int64_t>(i) - 30;
        const axes a(numbers);
        EXPECT_EQ(a.size(), n);
        EXPECT_FALSE(a.is_too_long());
        EXPECT_EQ(listed(a), numbers);
    }
}

TEST(Axes, TooLongKeepsItsLengthAndWritesNothingBehind) {
    for (const std::size_t n : {std::size_t{65}, std::size_t{66}, std::size_t{1000}}) {
        alignas(axes) std::array<std::byte, sizeof(axes) + 64> room;
        room.fill(std::byte{0x55});
        const auto* const list = new (room.data()) axes(ints(n, 3));
        EXPECT_EQ(list->size(), n);
        EXPECT_TRUE(list->is_too_long());
        EXPECT_EQ(listed(*list), ints(64, 3));
        EXPECT_EQ(room[sizeof(axes)], std::byte{0x55});
    }
}

TEST(Axes, EndsOfTheRange) {
    EXPECT_EQ(listed({int64_lowest, int64_highest}), (ints{int64_lowest, int64_highest}));
    EXPECT_EQ(listed(std::uint64_t{1} << 62U), (ints{std::int64_t{1} << 62U}));
    EXPECT_EQ(listed(static_cast<std::uint64_t>(int64_highest)), ints{int64_highest});
}

/// "A number that does not fit becomes one that no check lets pass": for elements of every size.
TEST(Axes, NumberThatDoesNotFitIsNeverAccepted) {
    alignas(16) std::byte memory[16]{};
    for (const std::uint64_t number : {std::uint64_t{1} << 63U, std::numeric_limits<std::uint64_t>::max(),
                                       static_cast<std::uint64_t>(int64_highest) + 2}) {
        for (const char* type : {"uint8", "int16", "float32", "complex128", "float4_e2m1fn", "bool"}) {
            const auto accepted = [&](const tensor_info& info) {
                return tenon::tensor::own(info, tenon::keep_alive()).has_value();
            };
            EXPECT_FALSE(accepted(tensor_info::contiguous(static_cast<void*>(memory), type, number)))
                << type << ' ' << number;
            EXPECT_FALSE(accepted(tensor_info::contiguous(static_cast<void*>(memory), type, {1, number, 1})))
                << type << ' ' << number;
            EXPECT_FALSE(accepted(tensor_info::contiguous(static_cast<void*>(memory), type, {number, 0})))
                << type << ' ' << number << ", with no elements";
            EXPECT_FALSE(accepted(tensor_info::strided(static_cast<void*>(memory), type, 2, number)))
                << type << " stride " << number;
        }
    }
}

}  // namespace
