// tests/cpp/for_each_test.cpp: loops over several windows meet each element once, whatever the layout; the
// windows they refuse; and elements in row-major order.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <random>
#include <ranges>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <tenon/tensor/for_each.hpp>

#include "allocations.hpp"
#include "support.hpp"

namespace {

using namespace tenon_test;
using tenon::broadcast;
using tenon::errc;
using tenon::for_each;
using tenon::view;

using range_of_two = decltype(std::declval<view<const float, 2>>().elements());
static_assert(std::ranges::forward_range<range_of_two> && std::ranges::sized_range<range_of_two>);
static_assert(std::ranges::forward_range<decltype(std::declval<view<float>>().elements())>);
static_assert(std::is_same_v<std::ranges::range_reference_t<range_of_two>, const float&>);

using numbers = std::vector<std::int64_t>;
using random_engine = std::mt19937_64;

std::int64_t draw(random_engine& rng, std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(rng);
}

/// Memory with a tensor somewhere in it: axes in any order, with gaps, some of them backwards.
struct laid_out {
    laid_out(random_engine& rng, const ints& shape, bool repeats) {
        std::vector<std::size_t> order(shape.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        if (draw(rng, 0, 2) != 0) std::shuffle(order.begin(), order.end(), rng);
        const bool has_gaps = draw(rng, 0, 1) != 0;
        ints strides(shape.size());
        std::int64_t step = 1, first = 0;
        for (const std::size_t axis : order) {
            if (has_gaps && draw(rng, 0, 2) == 0) step += draw(rng, 1, 3);
            strides[axis] = step;
            step *= std::max<std::int64_t>(shape[axis], 1);
            if (repeats && draw(rng, 0, 4) == 0) strides[axis] = 0;
            if (draw(rng, 0, 3) == 0) {
                strides[axis] = -strides[axis];
                first -= strides[axis] * std::max<std::int64_t>(shape[axis] - 1, 0);
            }
            if (shape[axis] == 1 && draw(rng, 0, 1) != 0) strides[axis] = 12345;  // touches nothing
        }
        memory.resize(static_cast<std::size_t>(std::max<std::int64_t>(step, 1)));
        std::iota(memory.begin(), memory.end(), std::int64_t{0});
        said = spec_of(memory, shape, strides);
        said.data = memory.data() + first;
    }

    numbers memory;
    spec said;
};

/// The element at an index counted from the last axes, where `t` may broadcast.
const std::int64_t& element_at(const tenon::tensor& t, const ints& index) {
    std::int64_t offset = 0;
    const std::size_t missing = index.size() - static_cast<std::size_t>(t.ndim());
    for (std::size_t i = 0; i < static_cast<std::size_t>(t.ndim()); ++i)
        if (t.shape(i) != 1) offset += index[missing + i] * t.stride(i);
    return static_cast<const std::int64_t*>(t.data())[offset];
}
bool next_index(ints& index, const ints& shape) {
    for (std::size_t i = shape.size(); i-- > 0;) {
        if (++index[i] < shape[i]) return true;
        index[i] = 0;
    }
    return false;
}
std::int64_t count_of(const ints& shape) { return tenon::element_count(shape).value(); }

ints draw_shape(random_engine& rng, std::int64_t max_rank) {
    ints shape(static_cast<std::size_t>(draw(rng, 0, max_rank)));
    for (auto& extent : shape) extent = draw(rng, 0, 9) == 0 ? 0 : draw(rng, 1, 4);
    return shape;
}
/// A shape that broadcasts into the given one.
ints draw_narrower(random_engine& rng, const ints& shape) {
    const auto missing = draw(rng, 0, 2) == 0 ? draw(rng, 0, static_cast<std::int64_t>(shape.size())) : 0;
    ints narrow(shape.begin() + missing, shape.end());
    for (auto& extent : narrow)
        if (draw(rng, 0, 3) == 0) extent = 1;
    return narrow;
}

/// Writes a sum of two windows to a third, and compares it with what single elements come to.
void check_sum(random_engine& rng, bool broadcasts) {
    const ints shape = draw_shape(rng, 5);
    laid_out first(rng, broadcasts ? draw_narrower(rng, shape) : shape, true);
    laid_out second(rng, broadcasts ? draw_narrower(rng, shape) : shape, true);
    laid_out third(rng, shape, false);
    const auto x = made(first.said), y = made(second.said), to = made(third.said);
    const auto a = view<const std::int64_t>::over(x), b = view<const std::int64_t>::over(y);
    const auto out = view<std::int64_t>::over(to);
    std::int64_t calls = 0;
    const auto add = [&](std::int64_t l, const std::int64_t& r, std::int64_t& sum) {
        sum = 1000 * l + r;
        ++calls;
    };
    const auto done = broadcasts ? for_each(broadcast, a, b, out, add) : for_each(a, b, out, add);
    ASSERT_TRUE(done) << done.error();
    ASSERT_EQ(calls, count_of(shape));
    ints index(shape.size());
    if (calls != 0) do
            ASSERT_EQ(element_at(to, index), 1000 * element_at(x, index) + element_at(y, index));
        while (next_index(index, shape));
}

TEST(ForEach, MeetsEachElementOnceInAnyLayout) {
    random_engine rng(1);
    for (int round = 0; round < 3000 && !HasFatalFailure(); ++round) check_sum(rng, false);
}

TEST(ForEach, BroadcastsAsNumpyDoes) {
    random_engine rng(2);
    for (int round = 0; round < 3000 && !HasFatalFailure(); ++round) check_sum(rng, true);
}

TEST(ForEach, BroadcastsAlongAxesOfAnyLength) {
    const numbers columns{2, 5};
    for (const std::int64_t length : {1, 15, 16, 17, 127, 128, 129, 256, 300}) {
        numbers row(static_cast<std::size_t>(length)), target(row.size() * 2), one{7};
        std::iota(row.begin(), row.end(), std::int64_t{0});
        numbers column = columns;
        const auto t = made(spec_of(row, {length})), c = made(spec_of(column, {2, 1}));
        const auto scalar = made(spec_of(one, {})), to = made(spec_of(target, {2, length}));
        std::int64_t calls = 0;
        ASSERT_TRUE(for_each(broadcast, view<const std::int64_t, 1>::over(t),
                             view<const std::int64_t, 2>::over(c), view<const std::int64_t>::over(scalar),
                             view<std::int64_t>::over(to),
                             [&](std::int64_t a, std::int64_t b, std::int64_t d, std::int64_t& sum) {
                                 sum += 1000 * a + 10 * b + d;
                                 ++calls;
                             }));
        EXPECT_EQ(calls, 2 * length);
        for (std::size_t i = 0; i < target.size(); ++i)
            ASSERT_EQ(target[i], 1000 * row[i % row.size()] + 10 * columns[i / row.size()] + 7) << i;
    }
}

TEST(ForEach, WalksMemoryInItsOrder) {
    numbers memory(24);
    std::iota(memory.begin(), memory.end(), std::int64_t{0});
    // However the axes are called, the elements come as they lie.
    for (const auto& [shape, strides] : std::vector<std::pair<ints, ints>>{{{2, 3, 4}, {12, 4, 1}},
                                                                           {{2, 3, 4}, {1, 2, 6}},
                                                                           {{4, 2, 3}, {1, 12, 4}},
                                                                           {{24}, {1}},
                                                                           {{2, 1, 12}, {12, 99, 1}}}) {
        const auto t = made(spec_of(memory, shape, strides));
        numbers seen;
        ASSERT_TRUE(for_each(view<const std::int64_t>::over(t), [&](std::int64_t v) { seen.push_back(v); }));
        EXPECT_EQ(seen, memory);
    }
    // What is written leads: the other is met out of order.
    numbers target(24);
    const auto from = made(spec_of(memory, {4, 6}, ints{6, 1}));
    const auto to = made(spec_of(target, {4, 6}, ints{1, 4}));
    numbers places;
    ASSERT_TRUE(
        for_each(view<const std::int64_t, 2>::over(from), view<std::int64_t, 2>::over(to),
                 [&](std::int64_t, std::int64_t& place) { places.push_back(&place - target.data()); }));
    EXPECT_EQ(places, memory);
}

TEST(ForEach, JoinsAxesAndKeepsTwoPlainLoops) {
    using tenon::detail::loop_axes;
    using tenon::detail::walked;
    const auto plan = [](const std::vector<walked>& windows, loop_axes& axes, numbers& steps) {
        steps.assign(windows.size() * static_cast<std::size_t>(tenon::max_rank), -1);
        EXPECT_TRUE(tenon::detail::plan_loop(windows.data(), windows.size(), true, axes, steps.data()));
    };
    loop_axes axes;
    numbers steps;
    const ints shape{2, 3, 4}, column{1, 2, 6}, row{12, 4, 1}, padded{15, 5, 1}, last{4}, one{1};
    plan({{shape, column, false}, {shape, column, true}}, axes, steps);
    EXPECT_TRUE(axes.rank == 2 && axes.is_plain && axes.extents[0] == 24 && axes.extents[1] == 1);
    plan({{shape, row, false}, {shape, padded, true}}, axes, steps);
    EXPECT_TRUE(axes.rank == 2 && axes.is_plain && axes.extents[0] == 4 && axes.extents[1] == 6) << axes.rank;
    EXPECT_EQ((numbers{steps[2], steps[3]}), (numbers{4, 5}));
    plan({{last, one, false}, {shape, row, true}}, axes, steps);
    EXPECT_TRUE(axes.rank == 2 && axes.is_plain && axes.extents[0] == 4 && axes.extents[1] == 6);
    EXPECT_EQ((numbers{steps[2], steps[3]}), (numbers{0, 4}));
    plan({{{}, {}, false}, {shape, row, true}}, axes, steps);
    EXPECT_TRUE(axes.rank == 2 && !axes.is_plain && axes.repeats && axes.extents[0] == 24);
    const ints flat{24}, stays{0};
    plan({{flat, one, false}, {flat, stays, true}}, axes, steps);
    EXPECT_TRUE(!axes.is_plain && !axes.repeats) << "what is written is not repeated";
    plan({{{}, {}, true}}, axes, steps);
    EXPECT_TRUE(axes.is_plain && !axes.repeats);
}

TEST(ForEach, TakesAsManyAxesAsThereMayBe) {
    numbers memory(128);
    std::iota(memory.begin(), memory.end(), std::int64_t{0});
    ints shape(static_cast<std::size_t>(tenon::max_rank), 1), strides(shape.size(), 7);
    shape[0] = shape[20] = shape[40] = shape[63] = 2;
    strides[0] = 3;
    strides[20] = 16;
    strides[40] = 64;
    strides[63] = 1;
    const auto t = made(spec_of(memory, shape, strides));
    std::int64_t sum = 0, calls = 0, walked = 0;
    ASSERT_TRUE(for_each(view<const std::int64_t>::over(t), [&](std::int64_t v) { sum += v, ++calls; }));
    EXPECT_EQ(calls, 16);
    EXPECT_EQ(sum, 8 * (3 + 16 + 64 + 1));
    for (const std::int64_t v : view<const std::int64_t>::over(t).elements()) walked += v;
    EXPECT_EQ(walked, sum);
}

TEST(ForEach, TakesAnyNumberOfWindowsAndNoAxes) {
    std::int64_t a = 1, b = 2, c = 3, d = 4, e = 0;
    const auto scalar = [](std::int64_t& value) {
        return made({.data = &value, .type = tenon::dtype_of<std::int64_t>});
    };
    const auto ta = scalar(a), tb = scalar(b), tc = scalar(c), td = scalar(d), te = scalar(e);
    using window = view<const std::int64_t, 0>;
    ASSERT_TRUE(
        for_each(window::over(ta), view<const std::int64_t>::over(tb), window::over(tc), window::over(td),
                 view<std::int64_t, 0>::over(te),
                 [](auto p, auto q, auto r, auto s, auto& to) { to = p + 10 * q + 100 * r + 1000 * s; }));
    EXPECT_EQ(e, 4321);
}

void twice(std::int64_t& v) { v *= 2; }

TEST(ForEach, CallsAnyFunctionWithoutAllocating) {
    numbers memory{1, 2, 3, 4, 5, 6};
    const auto t = made(spec_of(memory, {2, 2}, ints{3, 1}));
    const auto v = view<std::int64_t, 2>::over(t);
    const int before = allocations_made;
    ASSERT_TRUE(for_each(v, twice));
    const auto by_const = [count = 0](std::int64_t& x) mutable { x += ++count; };
    auto counting = by_const;
    ASSERT_TRUE(for_each(v, counting));
    EXPECT_EQ(allocations_made, before);
    EXPECT_EQ(memory, (numbers{3, 6, 3, 11, 14, 6}));
}

TEST(ForEach, WhatTheFunctionThrowsPasses) {
    numbers memory{1, 2, 3};
    const auto t = made(spec_of(memory, {3}));
    const auto stop = [](std::int64_t& v) { v == 2 ? throw std::out_of_range("two") : v = 0; };
    EXPECT_THROW((void)for_each(view<std::int64_t, 1>::over(t), stop), std::out_of_range);
    EXPECT_EQ(memory, (numbers{0, 2, 3}));
}

TEST(ForEach, WindowsOfOtherShapesAreRefused) {
    numbers memory(12);
    const auto first = made(spec_of(memory, {2, 3})), other = made(spec_of(memory, {2, 4}));
    const auto shorter = made(spec_of(memory, {6}));
    const auto v = [](const tenon::tensor& t) { return view<const std::int64_t>::over(t); };
    const auto never = [](auto...) { ADD_FAILURE() << "called"; };
    auto refused = for_each(v(first), v(first), v(other), never);
    expect_error(refused, errc::mismatched, "shape", 1);
    EXPECT_EQ(refused.error().message(),
              "tensor 3: shape[1]: it must have the same shape as the first (got 4, expected 3); pass arrays "
              "of one "
              "shape; in C++, tenon::broadcast lets them broadcast");
    refused = for_each(v(first), v(shorter), never);
    expect_error(refused, errc::mismatched, "ndim");
    EXPECT_EQ(refused.error().got, 1);
    EXPECT_EQ(refused.error().wanted, 2);
    refused = for_each(broadcast, v(first), v(other), never);
    expect_error(refused, errc::mismatched, "shape", 1);
    EXPECT_EQ(
        refused.error().message(),
        "tensor 2: shape[1]: it does not broadcast with what comes before it (got 4, expected 3); axes are "
        "matched from the last on: each has that extent, or 1, or is missing");
}

TEST(ForEach, WhatIsWrittenHasTheFullShape) {
    numbers memory(12);
    const auto wide = made(spec_of(memory, {2, 3})), thin = made(spec_of(memory, {1, 3}));
    const auto row = made(spec_of(memory, {3}));
    const auto never = [](auto&&...) { ADD_FAILURE() << "called"; };
    auto refused =
        for_each(broadcast, view<const std::int64_t>::over(wide), view<std::int64_t>::over(thin), never);
    expect_error(refused, errc::mismatched, "shape", 0);
    EXPECT_EQ(refused.error().which, 2);
    refused = for_each(broadcast, view<std::int64_t>::over(row), view<const std::int64_t>::over(thin), never);
    expect_error(refused, errc::mismatched, "ndim");
    EXPECT_EQ(refused.error().which, 1);
    EXPECT_EQ(refused.error().wanted, 2);
}

TEST(BroadcastShape, SaysWhatTheyComeTo) {
    numbers memory(60);
    const auto a = made(spec_of(memory, {4, 1, 3})), b = made(spec_of(memory, {5, 1}));
    const auto none = made(spec_of(memory, {0, 1})), scalar = made(spec_of(memory, {}));
    const auto of = [](const auto&... t) {
        const auto made = tenon::broadcast_shape(t...);
        return made ? to_ints(made->values()) : ints{-1};
    };
    EXPECT_EQ(of(a, b), (ints{4, 5, 3}));
    EXPECT_EQ(of(view<const std::int64_t>::over(b), a, scalar), (ints{4, 5, 3}));
    EXPECT_EQ(of(scalar), ints{});
    EXPECT_EQ(of(none, scalar, made(spec_of(memory, {2, 1, 7}))), (ints{2, 0, 7}));
    const auto refused = tenon::broadcast_shape(scalar, b, made(spec_of(memory, {2, 3})));
    expect_error(refused, errc::mismatched, "shape", 0);
    EXPECT_EQ(refused.error().which, 3);
}

TEST(Elements, ComeInRowMajorOrderInAnyLayout) {
    random_engine rng(3);
    for (int round = 0; round < 2000; ++round) {
        const ints shape = draw_shape(rng, 5);
        laid_out laid(rng, shape, true);
        const auto t = made(laid.said);
        numbers wanted, got;
        ints index(shape.size());
        if (count_of(shape) != 0) do
                wanted.push_back(element_at(t, index));
            while (next_index(index, shape));
        for (const std::int64_t v : view<const std::int64_t>::over(t).elements()) got.push_back(v);
        ASSERT_EQ(got, wanted);
        if (shape.size() != 3) continue;
        const auto fixed = view<std::int64_t, 3>::over(t);
        ASSERT_TRUE(std::ranges::equal(fixed.elements(), wanted));
        ASSERT_EQ(fixed.elements().size(), wanted.size());
    }
}

TEST(Elements, AreReferencesAndMayBeWalkedAgain) {
    numbers memory{0, 1, 2, 3, 4, 5};
    const auto t = made(spec_of(memory, {2, 2}, ints{3, 2}));
    const auto all = view<std::int64_t>::over(t).elements();
    for (std::int64_t& v : all) v = -v;
    EXPECT_EQ(memory, (numbers{0, 1, -2, -3, 4, -5}));
    auto second = std::next(all.begin());
    const auto kept = second++;
    EXPECT_EQ(*kept, -2);
    EXPECT_EQ(*second, -3);
    EXPECT_EQ(std::accumulate(all.begin(), all.end(), std::int64_t{0}), -10);
    EXPECT_EQ(std::ranges::max(all), 0);
}

}  // namespace
