// tests/cpp/view_test.cpp: typed host windows: what they refuse, how they index, iterate, and become spans
// and mdspans.

#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/tensor/view.hpp>

#include "support.hpp"

namespace user {
/// A 4-bit integer in a byte of its own, as a padded tensor stores it.
struct nibble {
    std::uint8_t byte;
};
/// Says 64 bits and has 32: no window may step by its size.
struct liar {
    float value;
};
}  // namespace user

template <>
struct tenon::dtype_traits<user::nibble> {
    static constexpr tenon::dtype value{tenon::abi::type_code::int_, 4};
};
template <>
struct tenon::dtype_traits<user::liar> {
    static constexpr tenon::dtype value{tenon::abi::type_code::float_, 64};
};

namespace {

using namespace tenon_test;
using tenon::dynamic_rank;
using tenon::errc;
using tenon::view;
namespace abi = tenon::abi;
namespace tc = tenon::abi::type_code;
namespace dc = tenon::abi::device_code;

// What is not viewable has no view: see tests/compile_fail/view_*.cpp.
using tenon::viewable;
static_assert(viewable<float> && viewable<const float> && viewable<tenon::bool8> && viewable<user::nibble>);
static_assert(sizeof(view<float>) + sizeof(view<user::nibble>) + sizeof(view<void>) + sizeof(view<>) > 0);
static_assert(!viewable<bool> && !viewable<const bool>, "a stored 2 would be undefined behaviour");
static_assert(!viewable<long double> && !viewable<int*> && !viewable<user::liar>);

template <class V, class... Index>
concept can_be_called = requires(const V v, Index... index) { v(index...); };
static_assert(can_be_called<view<float, 2>, int, long> && !can_be_called<view<float, 2>, int>);
static_assert(!can_be_called<view<float, 2>, int, int, int> && can_be_called<view<float, 0>>);
static_assert(!can_be_called<view<float, 1>, float>);
static_assert(!can_be_called<view<float>, int, int, int> && !can_be_called<view<float>>, "of any rank");

template <class V>
concept can_be_subscripted = requires(const V v) { v[0]; };
static_assert(can_be_subscripted<view<float, 1>> && can_be_subscripted<view<float, 3>>);
static_assert(!can_be_subscripted<view<float, 0>> && !can_be_subscripted<view<float>>);

// Constness of the element is the constness of everything handed out.
static_assert(std::is_same_v<decltype(std::declval<view<const float, 1>>()[0]), const float&>);
static_assert(std::is_same_v<decltype(std::declval<view<float, 1>>()[0]), float&>);
static_assert(std::is_same_v<decltype(std::declval<view<const float, 2>>()[0]), view<const float, 1>>);
static_assert(std::is_same_v<decltype(std::declval<view<const float, 2>>().data()), const float*>);
static_assert(std::is_same_v<decltype(std::declval<view<const void>>().data()), const void*>);
static_assert(!std::is_constructible_v<view<float, 1>, view<const float, 1>>);
static_assert(std::is_convertible_v<view<float, 1>, view<const float, 1>>);
static_assert(!std::is_constructible_v<view<float, 1>, view<float, 2>>);
static_assert(!std::is_assignable_v<view<float, 1>&, view<float, 2>>);

template <class V, class U>
concept can_become = requires(const V v) { v.template as<U, 1>(); };
static_assert(can_become<view<void>, float> && can_become<view<void>, const float>);
static_assert(can_become<view<const void>, const float> && !can_become<view<const void>, float>);
static_assert(!can_become<view<void>, bool>);

static_assert(std::ranges::input_range<const view<float, 1>> &&
              std::ranges::input_range<const view<float, 2>>);
static_assert(!std::ranges::range<const view<float, 0>> && !std::ranges::range<const view<float>>);
static_assert(std::is_trivially_copyable_v<view<float, 2>> && std::is_trivially_copyable_v<view<const void>>);

std::vector<float> iota(std::size_t n) {
    std::vector<float> v(n);
    std::iota(v.begin(), v.end(), 0.0F);
    return v;
}

// --- refusals ---------------------------------------------------------------------------------------

TEST(View, RefusesAnotherElementType) {
    auto memory = iota(6);
    const auto t = made(spec_of(memory, {6}));
    expect_error(view<double>::from(t), errc::refused, "dtype");
    expect_error(view<const std::int32_t>::from(t), errc::refused, "dtype");
    expect_error(view<const std::complex<float>, 1>::from(t), errc::refused, "dtype");
    EXPECT_TRUE(view<float>::from(t));
}

TEST(View, RefusesAnotherRank) {
    auto memory = iota(6);
    const auto t = made(spec_of(memory, {2, 3}));
    expect_error(view<float, 1>::from(t), errc::refused, "ndim");
    expect_error(view<float, 3>::from(t), errc::refused, "ndim");
    expect_error(view<const void, 0>::from(t), errc::refused, "ndim");
    EXPECT_TRUE((view<float, 2>::from(t)));
    EXPECT_TRUE(view<float>::from(t));
}

TEST(View, RefusesMemoryTheHostCannotRead) {
    auto memory = iota(6);
    spec s = spec_of(memory, {6});
    for (const auto kind : {dc::cuda, dc::rocm, dc::metal, dc::opencl, dc::ext_dev}) {
        s.where = {kind, 0};
        expect_error(view<const float>::from(made(s)), errc::refused, "device");
        expect_error(view<const void>::from(made(s)), errc::refused, "device");
    }
    for (const auto kind : {dc::cpu, dc::cuda_host, dc::rocm_host, dc::cuda_managed}) {
        s.where = {kind, 0};
        EXPECT_TRUE(view<float>::from(made(s)));
    }
}

TEST(View, ReadOnlyIsForConstOnly) {
    auto memory = iota(6);
    spec s = spec_of(memory, {6});
    s.flags = abi::flag::read_only;
    const auto t = made(s);
    expect_error(view<float>::from(t), errc::refused, "flags");
    expect_error(view<float, 1>::from(t), errc::refused, "flags");
    expect_error(view<void>::from(t), errc::refused, "flags");
    EXPECT_TRUE(view<const float>::from(t));
    EXPECT_TRUE(view<const void>::from(t));
}

TEST(View, SharedElementsAreForConstOnly) {
    auto memory = iota(6);
    for (const ints& strides : {ints{0, 1}, ints{1, 1}}) {
        const auto t = made(spec_of(memory, {2, 3}, strides));
        expect_error(view<float>::from(t), errc::refused, "strides");
        expect_error(view<void>::from(t), errc::refused, "strides");
        EXPECT_TRUE(view<const float>::from(t));
    }
}

TEST(View, MisalignedMemoryIsRefusedTypedAndTakenUntyped) {
    std::vector<double> aligned(8);
    auto* bytes = reinterpret_cast<std::byte*>(aligned.data());
    for (std::size_t shift = 1; shift < 8; ++shift) {
        const spec s{.data = bytes + shift, .shape = {2}, .type = tenon::dtype_of<double>};
        const auto t = made(s);
        const auto typed = view<const double, 1>::from(t);
        expect_error(typed, errc::refused, "data");
        EXPECT_EQ(typed.error().got, static_cast<std::int64_t>(shift));
        const auto open = view<const void>::from(t);
        ASSERT_TRUE(open);
        EXPECT_EQ(open->data(), bytes + shift);
        expect_error(open->as<const double>(), errc::refused, "data");
    }
    // By offset just the same, and bytes are never misaligned.
    expect_error(view<double>::from(
                     made({.data = bytes, .shape = {2}, .type = tenon::dtype_of<double>, .byte_offset = 4})),
                 errc::refused, "data");
    EXPECT_TRUE(view<std::uint8_t>::from(
        made({.data = bytes + 1, .shape = {2}, .type = tenon::dtype_of<std::uint8_t>})));
    // Nothing is never misaligned.
    EXPECT_TRUE(
        view<double>::from(made({.data = address(1), .shape = {0}, .type = tenon::dtype_of<double>})));
}

TEST(View, PackedElementsHaveNoAddressEach) {
    std::array<std::uint8_t, 8> memory{0, 1, 2, 3, 4, 5, 6, 7};
    spec s{.data = memory.data(), .shape = {8}, .type = {tc::int_, 4}};
    expect_error(view<const user::nibble, 1>::from(made(s)), errc::refused, "dtype");
    s.flags = abi::flag::subbyte_padded;
    const auto v = view<const user::nibble, 1>::from(made(s));
    ASSERT_TRUE(v) << v.error();
    EXPECT_EQ((*v)[7].byte, 7);
}

// --- reading and writing ----------------------------------------------------------------------------

TEST(View, DescribesTheTensor) {
    auto memory = iota(24);
    const auto t = made(spec_of(memory, {2, 3, 4}));
    const auto check_it = [&](const auto& v) {
        EXPECT_EQ(v.data(), memory.data());
        EXPECT_EQ(v.ndim(), 3);
        EXPECT_EQ(v.size(), 24);
        EXPECT_FALSE(v.empty());
        EXPECT_EQ(to_ints(v.shape()), (ints{2, 3, 4}));
        EXPECT_EQ(to_ints(v.strides()), (ints{12, 4, 1}));
        EXPECT_EQ(v.shape(1), 3);
        EXPECT_EQ(v.stride(0), 12);
        EXPECT_TRUE(v.is_c_contiguous());
    };
    check_it(*view<float, 3>::from(t));
    check_it(*view<const float>::from(t));
    check_it(*view<const void>::from(t));
}

TEST(View, StaticRankKeepsItsOwnShape) {
    auto memory = iota(6);
    auto t = std::make_unique<tenon::tensor>(made(spec_of(memory, {2, 3})));
    const auto v = *view<float, 2>::from(*t);
    t.reset();  // the memory stays; shape and strides went with the tensor
    EXPECT_EQ(to_ints(v.shape()), (ints{2, 3}));
    EXPECT_EQ(v(1, 2), 5.0F);
}

TEST(View, AppliesByteOffset) {
    auto memory = iota(6);
    spec s = spec_of(memory, {3});
    s.byte_offset = 12;
    const auto v = *view<float, 1>::from(made(s));
    EXPECT_EQ(v.data(), memory.data() + 3);
    EXPECT_EQ(v[0], 3.0F);
}

TEST(View, WritesThroughAndReadsBack) {
    auto memory = iota(6);
    const auto v = *view<float, 2>::from(made(spec_of(memory, {2, 3})));
    v(1, 2) = 100.0F;
    v[0][1] = 50.0F;
    EXPECT_EQ(memory[5], 100.0F);
    EXPECT_EQ(memory[1], 50.0F);
}

TEST(View, IndexesAnyLayoutAtAnyRank) {
    std::mt19937 rng(9);
    auto memory = iota(4096);
    for (int round = 0; round < 500; ++round) {
        std::array<std::int64_t, 3> shape{};
        std::array<std::int64_t, 3> strides{};
        for (std::size_t i = 0; i < 3; ++i) {
            shape[i] = std::uniform_int_distribution<std::int64_t>(1, 4)(rng);
            strides[i] = std::uniform_int_distribution<std::int64_t>(-200, 200)(rng);
        }
        spec s = spec_of(memory, {shape.begin(), shape.end()}, ints(strides.begin(), strides.end()));
        s.data = memory.data() + 2000;
        const auto t = made(s);
        const auto fixed = *view<const float, 3>::from(t);
        for (std::int64_t i = 0; i < shape[0]; ++i)
            for (std::int64_t j = 0; j < shape[1]; ++j)
                for (std::int64_t k = 0; k < shape[2]; ++k) {
                    const float wanted =
                        static_cast<float>(2000 + i * strides[0] + j * strides[1] + k * strides[2]);
                    ASSERT_EQ(fixed(i, j, k), wanted);
                    ASSERT_EQ(fixed[i][j][k], wanted);
                    ASSERT_EQ(fixed[i](j, k), wanted);
                }
        // Rows in order, and as many as there are.
        std::int64_t rows = 0;
        for (const auto row : fixed) {
            ASSERT_EQ(row.size(), shape[1] * shape[2]);
            std::int64_t columns = 0;
            for (const auto line : row) {
                std::int64_t elements = 0;
                for (const float& x : line) ASSERT_EQ(&x, &fixed(rows, columns, elements++));
                ASSERT_EQ(elements, shape[2]);
                ++columns;
            }
            ASSERT_EQ(columns, shape[1]);
            ++rows;
        }
        ASSERT_EQ(rows, shape[0]);
    }
}

TEST(View, IntegersOfAnyTypeIndex) {
    auto memory = iota(6);
    const auto v = *view<float, 2>::from(made(spec_of(memory, {2, 3})));
    EXPECT_EQ(v(std::size_t{1}, 2), 5.0F);
    EXPECT_EQ(v(std::int8_t{1}, std::uint16_t{1}), 4.0F);
}

TEST(View, NegativeStridesReadBackwards) {
    auto memory = iota(4);
    spec s = spec_of(memory, {4}, ints{-1});
    s.data = memory.data() + 3;
    const auto v = *view<float, 1>::from(made(s));
    const std::vector<float> seen(v.begin(), v.end());
    EXPECT_EQ(seen, (std::vector<float>{3, 2, 1, 0}));
    v[3] = 9.0F;
    EXPECT_EQ(memory[0], 9.0F);
}

TEST(View, IteratorSteps) {
    auto memory = iota(3);
    const auto v = *view<float, 1>::from(made(spec_of(memory, {3})));
    auto it = v.begin();
    EXPECT_EQ(*it++, 0.0F);
    EXPECT_EQ(*it, 1.0F);
    EXPECT_EQ(*++it, 2.0F);
    EXPECT_NE(it, v.end());
    EXPECT_EQ(++it, v.end());
}

TEST(View, ScalarHasOneElement) {
    float x = 3.0F;
    const auto t = made({.data = &x});
    EXPECT_EQ((*view<float, 0>::from(t))(), 3.0F);
    const auto span = view<float, 0>::from(t)->span();
    ASSERT_TRUE(span);
    EXPECT_EQ(span->size(), 1U);
}

TEST(View, EmptyOnesWalkNowhere) {
    for (void* data : {static_cast<void*>(nullptr), address(0x1000)}) {
        for (const ints& strides :
             {ints{1, 1}, ints{0, 0}, ints{int64_highest, int64_lowest}, ints{int64_lowest, 1}}) {
            const auto t = made({.data = data, .shape = {3, 0}, .strides = strides});
            const auto v = view<float, 2>::from(t);
            ASSERT_TRUE(v) << v.error();
            EXPECT_TRUE(v->empty());
            int rows = 0;
            for (const auto row : *v) {
                ++rows;
                EXPECT_EQ(row.size(), 0);
                for (const float x : row) FAIL() << x;
            }
            EXPECT_EQ(rows, 3);
            const auto span = v->span();
            ASSERT_TRUE(span);
            EXPECT_TRUE(span->empty());
        }
    }
    const auto none = *view<float, 2>::from(made({.shape = {0, 3}}));
    EXPECT_EQ(none.begin(), none.end());
}

TEST(View, StoredBooleansMayBeAnyByte) {
    std::array<std::uint8_t, 4> memory{0, 1, 2, 255};
    const auto t = made({.data = memory.data(), .shape = {4}, .type = {tc::bool_, 8}});
    const auto v = *view<const tenon::bool8, 1>::from(t);
    EXPECT_FALSE(v[0]);
    EXPECT_TRUE(v[1] && v[2] && v[3]);
    expect_error(view<const std::uint8_t, 1>::from(t), errc::refused, "dtype");
}

// --- untyped ----------------------------------------------------------------------------------------

TEST(UntypedView, IsClosedLater) {
    auto memory = iota(6);
    spec s = spec_of(memory, {2, 3});
    s.flags = abi::flag::read_only;
    const auto t = made(s);
    const auto open = *view<const void>::from(t);
    EXPECT_EQ(open.dtype(), tenon::dtype_of<float>);
    EXPECT_EQ(open.nbytes(), 24);
    EXPECT_EQ(open.itemsize(), 4);
    EXPECT_TRUE(open.is_read_only());
    const auto typed = open.as<const float, 2>();
    ASSERT_TRUE(typed);
    EXPECT_EQ((*typed)(1, 1), 4.0F);
    expect_error(open.as<const double>(), errc::refused, "dtype");
    expect_error((open.as<const float, 1>()), errc::refused, "ndim");
}

TEST(UntypedView, WritableStaysWritable) {
    auto memory = iota(6);
    const auto t = made(spec_of(memory, {6}));
    const auto open = view<void, 1>::from(t);
    ASSERT_TRUE(open);
    const auto typed = open->as<float>();
    ASSERT_TRUE(typed);
    (*typed)[2] = -1.0F;
    EXPECT_EQ(memory[2], -1.0F);
}

// --- span -------------------------------------------------------------------------------------------

TEST(ViewSpan, ContiguousOnly) {
    auto memory = iota(12);
    const auto whole = view<float, 2>::from(made(spec_of(memory, {3, 4})))->span();
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->data(), memory.data());
    EXPECT_EQ(whole->size(), 12U);
    static_assert(
        std::is_same_v<decltype(view<const float>::from(std::declval<tenon::tensor>())->span())::value_type,
                       std::span<const float>>);
    expect_error(view<float, 2>::from(made(spec_of(memory, {3, 2}, ints{4, 2})))->span(), errc::refused,
                 "strides");
    expect_error(view<float, 2>::from(made(spec_of(memory, {3, 4}, ints{1, 3})))->span(), errc::refused,
                 "strides");
    EXPECT_TRUE(view<float>::from(made(spec_of(memory, {1, 4}, ints{99, 1})))->span());
}

// --- mdspan: a stand-in that minds its preconditions ------------------------------------------------

constexpr std::size_t dyn = std::dynamic_extent;

template <class Index, std::size_t... Fixed>
struct md_extents {
    using index_type = Index;
    static constexpr std::size_t rank() { return sizeof...(Fixed); }
    static constexpr std::size_t fixed[] = {Fixed..., 0};
    static constexpr std::size_t static_extent(std::size_t i) { return fixed[i]; }
    template <std::same_as<Index>... E>
        requires(sizeof...(E) == sizeof...(Fixed))
    explicit md_extents(E... e) : values{e...} {
        for (std::size_t i = 0; i < rank(); ++i)
            if (fixed[i] != dyn) {
                EXPECT_EQ(static_cast<std::size_t>(values[i]), fixed[i]) << "precondition of extents";
            }
        for (const auto x : values) EXPECT_GE(x, 0) << "precondition of extents";
    }
    [[nodiscard]] Index extent(std::size_t i) const { return values[i]; }
    std::array<Index, sizeof...(Fixed)> values;
};

struct layout_any_stride {
    template <class E>
    struct mapping {
        using steps = std::array<typename E::index_type, E::rank()>;
        mapping(const E& e, const steps& s) : all(e), by(s) {
            for (const auto x : s) EXPECT_GT(x, 0) << "precondition of layout_stride";
        }
        [[nodiscard]] auto stride(std::size_t i) const { return by[i]; }
        E all;
        steps by;
    };
};

struct layout_row_major {
    template <class E>
    struct mapping {
        explicit mapping(const E& e) : all(e) {}
        [[nodiscard]] auto stride(std::size_t axis) const {
            typename E::index_type s = 1;
            for (std::size_t i = axis + 1; i < E::rank(); ++i)
                s = static_cast<decltype(s)>(s * all.extent(i));
            return s;
        }
        E all;
    };
};

template <class T, class E, class Layout>
struct md {
    using element_type = T;
    using extents_type = E;
    using index_type = typename E::index_type;
    using mapping_type = typename Layout::template mapping<E>;
    static constexpr std::size_t rank() { return E::rank(); }
    static constexpr std::size_t static_extent(std::size_t i) { return E::static_extent(i); }
    md(T* p, const mapping_type& m) : data(p), map(m) {}
    [[nodiscard]] T& at(index_type i, index_type j) const {
        return data[i * map.stride(0) + j * map.stride(1)];
    }
    T* data;
    mapping_type map;
};

template <class T, class Index, std::size_t... E>
using strided = md<T, md_extents<Index, E...>, layout_any_stride>;
template <class T, class Index, std::size_t... E>
using compact = md<T, md_extents<Index, E...>, layout_row_major>;

template <class V, class M>
concept converts_to = requires(const V v) { v.template to<M>(); };
static_assert(converts_to<view<float, 2>, strided<float, int, dyn, dyn>>);
static_assert(!converts_to<view<float, 1>, strided<float, int, dyn, dyn>>);
static_assert(!converts_to<view<float>, strided<float, int, dyn, dyn>>);

TEST(ViewMdspan, StridedTakesAnyPositiveStride) {
    auto memory = iota(24);
    const auto v = *view<float, 2>::from(made(spec_of(memory, {3, 2}, ints{8, 3})));
    const auto m = v.to<strided<float, std::int64_t, dyn, dyn>>();
    ASSERT_TRUE(m) << m.error();
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 2; ++j) EXPECT_EQ(&m->at(i, j), &v(i, j));
    EXPECT_TRUE((v.to<strided<float, int, 3, dyn>>()));
    EXPECT_TRUE((v.to<strided<float, std::size_t, dyn, 2>>()));
}

TEST(ViewMdspan, StridedRefusesWhatItCannotExpress) {
    auto memory = iota(24);
    spec s = spec_of(memory, {3, 2}, ints{-8, 1});
    s.data = memory.data() + 16;
    expect_error(view<float, 2>::from(made(s))->to<strided<float, std::int64_t, dyn, dyn>>(), errc::refused,
                 "strides", 0);
    s.strides = ints{3, 0};
    expect_error(view<const float, 2>::from(made(s))->to<strided<const float, std::int64_t, dyn, dyn>>(),
                 errc::refused, "strides", 1);
    s.strides = ints{200, 1};  // does not fit in the index type
    s.shape = {2, 2};
    s.data = memory.data();
    expect_error(view<float, 2>::from(made(s))->to<strided<float, std::int8_t, dyn, dyn>>(), errc::refused,
                 "strides", 0);
    s.shape = {1, 300};
    s.strides = ints{1, 1};
    const auto wide = view<float, 2>::from(made(s))->to<strided<float, std::int8_t, dyn, dyn>>();
    ASSERT_FALSE(wide);
    EXPECT_EQ(wide.error().axis, 1);
}

TEST(ViewMdspan, StaticExtentsMustMatch) {
    auto memory = iota(24);
    const auto v = *view<float, 2>::from(made(spec_of(memory, {3, 2})));
    const auto wrong = v.to<strided<float, int, 3, 4>>();
    expect_error(wrong, errc::refused, "shape", 1);
    EXPECT_EQ(wrong.error().got, 2);
    EXPECT_EQ(wrong.error().wanted, 4);
    expect_error(v.to<compact<float, int, 2, 2>>(), errc::refused, "shape", 0);
    EXPECT_TRUE((v.to<compact<float, int, 3, 2>>()));
}

TEST(ViewMdspan, StridesOfSingleElementsDoNotMatter) {
    auto memory = iota(24);
    for (const std::int64_t odd : {int64_lowest, int64_highest, std::int64_t{0}, std::int64_t{-3}}) {
        const auto v = *view<float, 2>::from(made(spec_of(memory, {1, 4}, ints{odd, 1})));
        const auto any = v.to<strided<float, int, dyn, dyn>>();
        ASSERT_TRUE(any) << any.error();
        EXPECT_EQ(any->at(0, 3), 3.0F);
        EXPECT_TRUE((v.to<compact<float, int, dyn, dyn>>()));
    }
}

TEST(ViewMdspan, CompactLayoutsTakeCompactViews) {
    auto memory = iota(24);
    const auto rows =
        view<float, 2>::from(made(spec_of(memory, {3, 4})))->to<compact<float, int, dyn, dyn>>();
    ASSERT_TRUE(rows) << rows.error();
    EXPECT_EQ(rows->at(2, 1), 9.0F);
    const auto gap =
        view<float, 2>::from(made(spec_of(memory, {3, 3}, ints{4, 1})))->to<compact<float, int, dyn, dyn>>();
    expect_error(gap, errc::refused, "strides", 0);
    EXPECT_EQ(gap.error().got, 4);
    EXPECT_EQ(gap.error().wanted, 3);
    expect_error(
        view<float, 2>::from(made(spec_of(memory, {3, 4}, ints{1, 3})))->to<compact<float, int, dyn, dyn>>(),
        errc::refused, "strides", 0);
}

TEST(ViewMdspan, EmptyViewsFitEveryLayout) {
    for (const ints& strides : {ints{1, 1}, ints{0, 0}, ints{int64_lowest, int64_highest}}) {
        const auto v = *view<float, 2>::from(made({.shape = {2, 0}, .strides = strides}));
        EXPECT_TRUE((v.to<compact<float, int, dyn, dyn>>()));
        EXPECT_TRUE((v.to<strided<float, int, dyn, dyn>>()));
    }
    const auto v = *view<float, 2>::from(made({.shape = {2, 0}}));
    EXPECT_TRUE((v.to<compact<float, int, dyn, dyn>>()));
}

TEST(ViewMdspan, Scalar) {
    float x = 4.0F;
    const auto v = *view<float, 0>::from(made({.data = &x}));
    const auto m = v.to<strided<float, int>>();
    ASSERT_TRUE(m);
    EXPECT_EQ(*m->data, 4.0F);
}

#if defined(__cpp_lib_mdspan)
TEST(ViewMdspan, TheStandardOne) {
    auto memory = iota(24);
    const auto v = *view<float, 2>::from(made(spec_of(memory, {3, 2}, ints{8, 3})));
    const auto m = v.mdspan();
    ASSERT_TRUE(m);
    EXPECT_EQ(m->extent(0), 3);
    EXPECT_EQ((*m)[std::array{2, 1}], 19.0F);
}
#endif

}  // namespace
