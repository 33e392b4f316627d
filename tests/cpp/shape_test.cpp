// tests/cpp/shape_test.cpp: sizes, spans, contiguity and overlap against wide arithmetic and brute force.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include <tenon/tensor/shape.hpp>

namespace tc = tenon::abi::type_code;
using tenon::dtype;
using tenon::extents;

namespace {

__extension__ using wide = __int128;

constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();

using ints = std::vector<std::int64_t>;
using random_engine = std::mt19937_64;

bool fits(wide v) { return v >= lowest && v <= highest; }

std::int64_t draw(random_engine& rng, std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(rng);
}

/// Numbers where overflow happens or just does not: around powers of two, plus small ones.
std::int64_t draw_edgy(random_engine& rng, bool negative_too) {
    std::int64_t v = 0;
    switch (draw(rng, 0, 3)) {
        case 0:
            v = draw(rng, 0, 9);
            break;
        case 1: {
            const std::int64_t power = std::int64_t{1} << draw(rng, 0, 62);
            v = power + std::min(draw(rng, -2, 2), highest - power);
            break;
        }
        case 2:
            v = highest - draw(rng, 0, 3);
            break;
        default:
            v = static_cast<std::int64_t>(rng() >> draw(rng, 1, 63));
            break;
    }
    v = std::max<std::int64_t>(v, 0);
    return negative_too && draw(rng, 0, 1) != 0 ? -v : v;
}

std::optional<std::int64_t> count_widely(const ints& shape) {
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
    wide n = 1;
    for (const auto e : shape) {
        n *= e;
        if (!fits(n)) return std::nullopt;
    }
    return static_cast<std::int64_t>(n);
}

TEST(Overflow, ChecksAgreeWithWideArithmetic) {
    random_engine rng(1);
    for (int round = 0; round < 20000; ++round) {
        std::int64_t a = draw_edgy(rng, true);
        std::int64_t b = draw_edgy(rng, true);
        if (round % 50 == 0) a = lowest;
        if (round % 70 == 0) b = lowest;
        std::int64_t out = 0;
        const bool mul = tenon::detail::mul_overflows(a, b, out);
        ASSERT_EQ(mul, !fits(static_cast<wide>(a) * b)) << a << ' ' << b;
        if (!mul) {
            ASSERT_EQ(out, a * b);
        }
        const bool add = tenon::detail::add_overflows(a, b, out);
        ASSERT_EQ(add, !fits(static_cast<wide>(a) + b)) << a << ' ' << b;
        if (!add) {
            ASSERT_EQ(out, a + b);
        }
    }
}

TEST(ElementCount, Known) {
    EXPECT_EQ(tenon::element_count({}), 1);
    EXPECT_EQ(tenon::element_count(ints{7}), 7);
    EXPECT_EQ(tenon::element_count(ints{2, 3, 4}), 24);
    EXPECT_EQ(tenon::element_count(ints{2, 0, 4}), 0);
    EXPECT_EQ(tenon::element_count(ints{highest}), highest);
    EXPECT_EQ(tenon::element_count(ints{highest, 1, 1}), highest);
    EXPECT_EQ(tenon::element_count(ints{highest, 2}), std::nullopt);
    EXPECT_EQ(tenon::element_count(ints{1LL << 32, 1LL << 31}), std::nullopt);
    EXPECT_EQ(tenon::element_count(ints{1LL << 32, 1LL << 30}), 1LL << 62);
    // The product wraps to zero; it must not look empty.
    EXPECT_EQ(tenon::element_count(ints{1LL << 32, 1LL << 32, 16}), std::nullopt);
    // A zero extent ends the computation, before and after an overflow.
    EXPECT_EQ(tenon::element_count(ints{0, highest, highest}), 0);
    EXPECT_EQ(tenon::element_count(ints{highest, highest, 0}), 0);
}

TEST(ElementCount, AgreesWithWideArithmetic) {
    random_engine rng(2);
    int overflows = 0;
    for (int round = 0; round < 20000; ++round) {
        ints shape(static_cast<std::size_t>(draw(rng, 0, 5)));
        for (auto& e : shape) e = draw_edgy(rng, false);
        const auto wanted = count_widely(shape);
        ASSERT_EQ(tenon::element_count(shape), wanted) << testing::PrintToString(shape);
        overflows += !wanted;
    }
    EXPECT_GT(overflows, 1000) << "the sweep must reach the limits";
}

TEST(ByteCount, SubByteElementsShareBytesAndAreRoundedOnce) {
    const dtype fp4{tc::float4_e2m1fn, 4};
    const dtype fp6{tc::float6_e2m3fn, 6};
    const dtype int2{tc::int_, 2};
    EXPECT_EQ(tenon::byte_count(3, fp4, false), 2);
    EXPECT_EQ(tenon::byte_count(3, fp4, true), 3);
    EXPECT_EQ(tenon::byte_count(0, fp4, false), 0);
    EXPECT_EQ(tenon::byte_count(1, fp4, false), 1);
    EXPECT_EQ(tenon::byte_count(2, fp4, false), 1);
    EXPECT_EQ(tenon::byte_count(17, fp4, false), 9);
    EXPECT_EQ(tenon::byte_count(4, fp6, false), 3);
    EXPECT_EQ(tenon::byte_count(5, fp6, false), 4);
    EXPECT_EQ(tenon::byte_count(5, fp6, true), 5);
    EXPECT_EQ(tenon::byte_count(9, int2, false), 3);
    EXPECT_EQ(tenon::byte_count(3, {tc::float4_e2m1fn, 4, 2}, false), 3);
    EXPECT_EQ(tenon::byte_count(3, {tc::float4_e2m1fn, 4, 3}, false), 5);  // 36 bits
    EXPECT_EQ(tenon::byte_count(3, {tc::float4_e2m1fn, 4, 3}, true), 6);
    // The flag means nothing to whole bytes.
    EXPECT_EQ(tenon::byte_count(3, {tc::float_, 32}, true), 12);
}

TEST(ByteCount, AgreesWithWideArithmetic) {
    random_engine rng(3);
    int overflows = 0;
    for (int round = 0; round < 20000; ++round) {
        const std::int64_t count = draw_edgy(rng, false);
        const dtype t{0, static_cast<std::uint8_t>(draw(rng, 1, 255)),
                      static_cast<std::uint16_t>(draw(rng, 0, 3) == 0 ? 65535 : draw(rng, 1, 4))};
        const bool padded = draw(rng, 0, 1) != 0;
        const wide bits = static_cast<wide>(t.bits) * t.lanes;
        const wide bytes = padded ? count * ((bits + 7) / 8) : (count * bits + 7) / 8;
        const auto got = tenon::byte_count(count, t, padded);
        ASSERT_EQ(got.has_value(), fits(bytes)) << count << ' ' << int{t.bits} << ' ' << t.lanes;
        if (got) {
            ASSERT_TRUE(*got == bytes) << count << ' ' << int{t.bits} << ' ' << t.lanes;
        }
        overflows += !got;
    }
    EXPECT_GT(overflows, 1000);
}

TEST(TouchedSpan, Known) {
    const auto span = [](const ints& shape, const ints& strides) {
        return tenon::touched_span(shape, strides);
    };
    EXPECT_EQ(span({}, {})->low, 0);
    EXPECT_EQ(span({}, {})->high, 0);
    EXPECT_EQ(span({3, 4}, {4, 1})->high, 11);
    EXPECT_EQ(span({3, 4}, {-4, 1})->low, -8);
    EXPECT_EQ(span({3, 4}, {-4, 1})->high, 3);
    EXPECT_EQ(span({3, 4}, {0, 0})->high, 0);
    EXPECT_EQ(span({1, 4}, {lowest, 1})->high, 3);
    EXPECT_EQ(span({1, 4}, {lowest, 1})->low, 0);
    EXPECT_EQ(span({2}, {lowest})->low, lowest);
    EXPECT_EQ(span({2, 2}, {lowest, -1}), std::nullopt);
    EXPECT_EQ(span({3}, {lowest}), std::nullopt);
    EXPECT_EQ(span({2, 2}, {highest, 1}), std::nullopt);
    // One direction each: neither overflows.
    EXPECT_EQ(span({2, 2}, {highest, -highest})->low, -highest);
}

TEST(TouchedSpan, AgreesWithWideArithmetic) {
    random_engine rng(4);
    int overflows = 0;
    for (int round = 0; round < 20000; ++round) {
        const auto n = static_cast<std::size_t>(draw(rng, 0, 5));
        ints shape(n);
        ints strides(n);
        wide low = 0;
        wide high = 0;
        for (std::size_t i = 0; i < n; ++i) {
            shape[i] = std::max<std::int64_t>(1, draw_edgy(rng, false));
            strides[i] = draw(rng, 0, 30) == 0 ? lowest : draw_edgy(rng, true);
            const wide reach = static_cast<wide>(shape[i] - 1) * strides[i];
            wide& end = reach < 0 ? low : high;
            if (fits(end)) end += reach;  // once out of range it stays there
        }
        const auto got = tenon::touched_span(shape, strides);
        ASSERT_EQ(got.has_value(), fits(low) && fits(high))
            << testing::PrintToString(shape) << testing::PrintToString(strides);
        if (got) {
            ASSERT_TRUE(got->low == low && got->high == high);
        }
        overflows += !got;
    }
    EXPECT_GT(overflows, 1000);
}

TEST(RowMajor, Strides) {
    const auto strides = [](const ints& shape) {
        ints out(shape.size(), -7);
        tenon::fill_row_major(shape, out.data());
        return out;
    };
    EXPECT_EQ(strides({}), ints{});
    EXPECT_EQ(strides({5}), (ints{1}));
    EXPECT_EQ(strides({2, 3, 4}), (ints{12, 4, 1}));
    EXPECT_EQ(strides({2, 1, 4}), (ints{4, 4, 1}));
    EXPECT_EQ(strides({2, 0, 4}), (ints{4, 4, 1}));
    // No real strides exist; the ones written are still small and positive.
    for (const auto s : strides({0, highest, highest, highest})) EXPECT_GT(s, 0);
    for (const auto s : strides({highest, highest, 0})) EXPECT_GT(s, 0);
}

TEST(RowMajor, StridesAreContiguous) {
    random_engine rng(5);
    for (int round = 0; round < 2000; ++round) {
        ints shape(static_cast<std::size_t>(draw(rng, 0, 6)));
        for (auto& e : shape) e = draw(rng, 0, 5);
        ints strides(shape.size());
        tenon::fill_row_major(shape, strides.data());
        ASSERT_TRUE(tenon::is_c_contiguous(shape, strides)) << testing::PrintToString(shape);
        std::reverse(shape.begin(), shape.end());
        std::reverse(strides.begin(), strides.end());
        ASSERT_TRUE(tenon::is_f_contiguous(shape, strides)) << testing::PrintToString(shape);
    }
}

struct contiguity_row {
    ints shape, strides;
    bool c, f;
};

TEST(Contiguity, Table) {
    for (const contiguity_row& r : {
             contiguity_row{{}, {}, true, true},
             contiguity_row{{5}, {1}, true, true},
             contiguity_row{{5}, {2}, false, false},
             contiguity_row{{5}, {-1}, false, false},
             contiguity_row{{5}, {0}, false, false},
             contiguity_row{{2, 3}, {3, 1}, true, false},
             contiguity_row{{2, 3}, {1, 2}, false, true},
             contiguity_row{{2, 3}, {4, 1}, false, false},
             contiguity_row{{2, 2}, {1, 1}, false, false},
             // The stride of an axis of one element means nothing.
             contiguity_row{{1}, {99}, true, true},
             contiguity_row{{1}, {lowest}, true, true},
             contiguity_row{{1, 1}, {0, -5}, true, true},
             contiguity_row{{1, 4}, {99, 1}, true, true},
             contiguity_row{{4, 1}, {1, lowest}, true, true},
             contiguity_row{{2, 1, 3}, {3, 77, 1}, true, false},
             contiguity_row{{2, 1, 3}, {1, highest, 2}, false, true},
             // Nothing is contiguous, whatever the strides.
             contiguity_row{{0}, {17}, true, true},
             contiguity_row{{0}, {0}, true, true},
             contiguity_row{{3, 0}, {lowest, highest}, true, true},
             contiguity_row{{0, 3}, {5, 5}, true, true},
             contiguity_row{{3, 0, 3}, {0, 0, 0}, true, true},
             contiguity_row{{1LL << 40, 1LL << 40, 0}, {1, 1, 1}, true, true},
             contiguity_row{{0, 1LL << 40, 1LL << 40}, {1, 1, 1}, true, true},
             contiguity_row{{1LL << 40, 0, 1LL << 40}, {1, 1, 1}, true, true},
         }) {
        const auto text = testing::PrintToString(r.shape) + testing::PrintToString(r.strides);
        EXPECT_EQ(tenon::is_c_contiguous(r.shape, r.strides), r.c) << text;
        EXPECT_EQ(tenon::is_f_contiguous(r.shape, r.strides), r.f) << text;
    }
}

/// Calls `fn(offset)` for every element, in row-major order.
template <class Fn>
void for_each_offset(const ints& shape, const ints& strides, Fn fn) {
    ints index(shape.size(), 0);
    const auto n = *tenon::element_count(shape);
    for (std::int64_t k = 0; k < n; ++k) {
        fn(std::inner_product(index.begin(), index.end(), strides.begin(), std::int64_t{0}));
        for (std::size_t axis = shape.size(); axis-- > 0;) {
            if (++index[axis] < shape[axis]) break;
            index[axis] = 0;
        }
    }
}

TEST(Contiguity, AgreesWithWalkingTheElements) {
    random_engine rng(6);
    int contiguous = 0;
    for (int round = 0; round < 20000; ++round) {
        const auto n = static_cast<std::size_t>(draw(rng, 0, 3));
        ints shape(n);
        ints strides(n);
        for (std::size_t i = 0; i < n; ++i) {
            shape[i] = draw(rng, 0, 3);
            strides[i] = draw(rng, -1, 6);
        }
        std::int64_t expected = 0;
        bool in_order = true;
        for_each_offset(shape, strides, [&](std::int64_t offset) { in_order &= offset == expected++; });
        ASSERT_EQ(tenon::is_c_contiguous(shape, strides), in_order)
            << testing::PrintToString(shape) << testing::PrintToString(strides);
        ints mirrored_shape(shape.rbegin(), shape.rend());
        ints mirrored_strides(strides.rbegin(), strides.rend());
        ASSERT_EQ(tenon::is_f_contiguous(mirrored_shape, mirrored_strides), in_order);
        contiguous += in_order;
    }
    EXPECT_GT(contiguous, 1000);
}

TEST(Overlap, Known) {
    EXPECT_FALSE(tenon::may_overlap({}, {}));
    EXPECT_FALSE(tenon::may_overlap(ints{5}, ints{1}));
    EXPECT_FALSE(tenon::may_overlap(ints{5}, ints{-3}));
    EXPECT_TRUE(tenon::may_overlap(ints{5}, ints{0}));
    EXPECT_FALSE(tenon::may_overlap(ints{1}, ints{0}));
    EXPECT_FALSE(tenon::may_overlap(ints{1, 3}, ints{lowest, 1}));
    EXPECT_TRUE(tenon::may_overlap(ints{3, 3}, ints{1, 1}));  // sliding window
    EXPECT_TRUE(tenon::may_overlap(ints{3, 3}, ints{2, 1}));
    EXPECT_FALSE(tenon::may_overlap(ints{3, 3}, ints{3, 1}));
    EXPECT_TRUE(tenon::may_overlap(ints{2, 2}, ints{4, -4}));
    EXPECT_TRUE(tenon::may_overlap(ints{2}, ints{lowest}));  // cannot be negated: called overlapping
    EXPECT_FALSE(tenon::may_overlap(ints{2}, ints{highest}));
    // Elements that do not exist do not meet, wherever the zero stands.
    EXPECT_FALSE(tenon::may_overlap(ints{0, 3}, ints{0, 0}));
    EXPECT_FALSE(tenon::may_overlap(ints{3, 0}, ints{0, 1}));
    EXPECT_FALSE(tenon::may_overlap(ints{3, 0}, ints{lowest, lowest}));
}

TEST(Overlap, AsManyAxesAsThereMayBe) {
    const ints shape(tenon::max_rank, 1);
    EXPECT_FALSE(tenon::may_overlap(shape, ints(tenon::max_rank, 0)));
    EXPECT_TRUE(tenon::may_overlap(ints(tenon::max_rank, 2), ints(tenon::max_rank, 1)));
    ints strides(62);
    for (std::size_t i = 0; i < strides.size(); ++i) strides[i] = std::int64_t{1} << i;
    EXPECT_FALSE(tenon::may_overlap(ints(62, 2), strides));
}

TEST(Overlap, NeverDeniedWhereElementsMeet) {
    random_engine rng(7);
    int overlapping = 0;
    int conservative = 0;
    for (int round = 0; round < 30000; ++round) {
        const auto n = static_cast<std::size_t>(draw(rng, 1, 4));
        ints shape(n);
        ints strides(n);
        for (std::size_t i = 0; i < n; ++i) {
            shape[i] = draw(rng, draw(rng, 0, 9) == 0 ? 0 : 1, 4);
            strides[i] = draw(rng, -20, 20);
        }
        std::set<std::int64_t> seen;
        bool meet = false;
        for_each_offset(shape, strides, [&](std::int64_t offset) { meet |= !seen.insert(offset).second; });
        const bool said = tenon::may_overlap(shape, strides);
        if (meet) {
            ASSERT_TRUE(said) << testing::PrintToString(shape) << testing::PrintToString(strides);
        }
        if (seen.empty()) {
            ASSERT_FALSE(said) << testing::PrintToString(shape) << testing::PrintToString(strides);
        }
        overlapping += meet;
        conservative += said && !meet;
    }
    EXPECT_GT(overlapping, 1000);
    EXPECT_LT(conservative, 15000);
}

TEST(Overlap, NeverClaimedForPermutedSlicedOrFlippedArrays) {
    random_engine rng(8);
    for (int round = 0; round < 20000; ++round) {
        const auto n = static_cast<std::size_t>(draw(rng, 0, 5));
        ints shape(n);
        for (auto& e : shape) e = draw(rng, 0, 6);
        ints strides(n);
        tenon::fill_row_major(shape, strides.data());
        std::vector<std::size_t> order(n);
        std::iota(order.begin(), order.end(), 0U);
        std::shuffle(order.begin(), order.end(), rng);
        ints cut(n);
        ints steps(n);
        for (std::size_t i = 0; i < n; ++i) {
            const auto step = draw(rng, 1, 3);
            const auto first = draw(rng, 0, std::max<std::int64_t>(shape[order[i]] - 1, 0));
            cut[i] = (shape[order[i]] - first + step - 1) / step;  // x[first::step]
            steps[i] = strides[order[i]] * step * (draw(rng, 0, 1) != 0 ? 1 : -1);
        }
        ASSERT_FALSE(tenon::may_overlap(cut, steps))
            << testing::PrintToString(cut) << testing::PrintToString(steps);
    }
}

}  // namespace
