// tests/cpp/dtype_test.cpp: which dtype each C++ type is, sizes, predicates, and bool8's reading of foreign
// bytes.

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/value/dtype.hpp>
#include <tenon/value/dtype_names.hpp>

namespace tc = tenon::abi::type_code;
using tenon::bool8;
using tenon::dtype;
using tenon::dtype_of;
using tenon::element;

namespace user {
struct half {
    std::uint16_t bits;
};
struct pair_of_floats {
    float a, b;
};
}  // namespace user

template <>
struct tenon::dtype_traits<user::half> {
    static constexpr tenon::dtype value{tenon::abi::type_code::float_, 16};
};
template <>
struct tenon::dtype_traits<user::pair_of_floats> {
    static constexpr tenon::dtype value{tenon::abi::type_code::float_, 32, 2};
};

namespace {

template <class T>
constexpr bool is(std::uint8_t code, std::uint8_t bits, std::uint16_t lanes = 1) {
    // const and volatile change nothing
    return dtype_of<T> == dtype{code, bits, lanes} && dtype_of<const T> == dtype_of<T> &&
           dtype_of<volatile T> == dtype_of<T> && sizeof(T) * 8 == dtype_of<T>.bits_per_element();
}

static_assert(is<std::int8_t>(tc::int_, 8) && is<signed char>(tc::int_, 8));
static_assert(is<std::int16_t>(tc::int_, 16) && is<short>(tc::int_, 16));
static_assert(is<std::int32_t>(tc::int_, 32) && is<int>(tc::int_, 32));
static_assert(is<std::int64_t>(tc::int_, 64) && is<long>(tc::int_, 64) && is<long long>(tc::int_, 64));
static_assert(is<std::uint8_t>(tc::uint, 8) && is<unsigned char>(tc::uint, 8));
static_assert(is<std::uint16_t>(tc::uint, 16) && is<char16_t>(tc::uint, 16));
static_assert(is<std::uint32_t>(tc::uint, 32) && is<char32_t>(tc::uint, 32));
static_assert(is<std::uint64_t>(tc::uint, 64) && is<unsigned long>(tc::uint, 64));
static_assert(is<unsigned long long>(tc::uint, 64) && is<std::size_t>(tc::uint, 64));
static_assert(is<char>(std::is_signed_v<char> ? tc::int_ : tc::uint, 8));
static_assert(is<float>(tc::float_, 32) && is<double>(tc::float_, 64));
static_assert(is<bool>(tc::bool_, 8) && is<bool8>(tc::bool_, 8));
static_assert(is<std::complex<float>>(tc::complex, 64) && is<std::complex<double>>(tc::complex, 128));
static_assert(is<user::half>(tc::float_, 16) && is<user::pair_of_floats>(tc::float_, 32, 2));
#if defined(__STDCPP_FLOAT16_T__)
static_assert(is<std::float16_t>(tc::float_, 16));
static_assert(is<std::float32_t>(tc::float_, 32) && is<std::float64_t>(tc::float_, 64));
#endif
#if defined(__STDCPP_BFLOAT16_T__)
static_assert(is<std::bfloat16_t>(tc::bfloat, 16));
#endif

// No dtype: its size is the platform's secret, or it is no value at all.
static_assert(!element<long double> && !element<std::complex<long double>> && !element<void>);
static_assert(!element<int*> && !element<std::nullptr_t> && !element<std::byte> && !element<float&>);

TEST(Dtype, SurvivesTheWireUnchanged) {
    for (unsigned code = 0; code < 256; ++code)
        for (const unsigned bits : {0U, 1U, 8U, 24U, 255U})
            for (const unsigned lanes : {0U, 1U, 2U, 65535U}) {
                const tenon::abi::dl_dtype raw{static_cast<std::uint8_t>(code),
                                               static_cast<std::uint8_t>(bits),
                                               static_cast<std::uint16_t>(lanes)};
                const auto back = dtype{raw}.to_abi();
                ASSERT_TRUE(back.code == raw.code && back.bits == raw.bits && back.lanes == raw.lanes);
            }
}

TEST(Dtype, EqualityComparesAllThree) {
    EXPECT_EQ(dtype(2, 32, 1), dtype(2, 32));
    EXPECT_NE(dtype(2, 32), dtype(1, 32));
    EXPECT_NE(dtype(2, 32), dtype(2, 64));
    EXPECT_NE(dtype(2, 32, 1), dtype(2, 32, 2));
    EXPECT_EQ(dtype(), dtype_of<float>);
}

TEST(Dtype, SizesOfWholeAndPartBytes) {
    struct row {
        dtype type;
        unsigned bits, bytes;
        bool subbyte;
    };
    for (const row& r :
         {row{{tc::float_, 32}, 32, 4, false}, row{{tc::complex, 128}, 128, 16, false},
          row{{tc::float4_e2m1fn, 4}, 4, 1, true}, row{{tc::float4_e2m1fn, 4, 2}, 8, 1, false},
          row{{tc::float4_e2m1fn, 4, 3}, 12, 2, true}, row{{tc::float6_e2m3fn, 6}, 6, 1, true},
          row{{tc::float6_e3m2fn, 6, 4}, 24, 3, false}, row{{tc::int_, 2}, 2, 1, true},
          row{{tc::int_, 255, 65535}, 16711425, 2088929, true}, row{{tc::int_, 0}, 0, 0, false}}) {
        EXPECT_EQ(r.type.bits_per_element(), r.bits);
        EXPECT_EQ(r.type.itemsize(), r.bytes) << r.bits;
        EXPECT_EQ(r.type.is_subbyte(), r.subbyte) << r.bits;
    }
}

TEST(Dtype, EveryCodeBelongsToAtMostOneKind) {
    for (unsigned code = 0; code < 256; ++code) {
        const dtype t{static_cast<std::uint8_t>(code), 8};
        const int kinds =
            t.is_signed_integer() + t.is_unsigned_integer() + t.is_floating() + t.is_complex() + t.is_bool();
        const bool named = code <= tc::bcomplex && code != tc::opaque_handle;
        EXPECT_EQ(kinds, named ? 1 : 0) << code;
        EXPECT_EQ(t.is_integer(), code <= 1) << code;
    }
    EXPECT_TRUE(dtype(tc::bfloat, 16).is_floating());
    EXPECT_TRUE(dtype(tc::float4_e2m1fn, 4).is_floating());
    EXPECT_FALSE(dtype(tc::complex, 64).is_floating());
    EXPECT_TRUE(dtype(tc::bcomplex, 32).is_complex());
    EXPECT_EQ(dtype(tc::bcomplex, 32).alignment(), 2U);
    EXPECT_FALSE(dtype(tc::bool_, 8).is_floating());
}

TEST(CanConvert, KeepsEveryValue) {
    using tenon::can_convert;
    const dtype b{tc::bool_, 8}, i8{tc::int_, 8}, i16{tc::int_, 16}, i32{tc::int_, 32}, i64{tc::int_, 64},
        u8{tc::uint, 8}, u16{tc::uint, 16}, u32{tc::uint, 32}, u64{tc::uint, 64}, f16{tc::float_, 16},
        f32{tc::float_, 32}, f64{tc::float_, 64}, bf16{tc::bfloat, 16}, f8{tc::float8_e4m3fn, 8},
        c64{tc::complex, 64}, c128{tc::complex, 128};
    const dtype all[] = {b, i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64, bf16, f8, c64, c128};
    // Beside itself, each becomes; NumPy's own answer for its types.
    const std::pair<dtype, std::vector<dtype>> becomes[] = {
        {b, {i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64, bf16, f8, c64, c128}},
        {i8, {i16, i32, i64, f16, f32, f64, c64, c128}},
        {i16, {i32, i64, f32, f64, c64, c128}},
        {i32, {i64, f64, c128}},
        {i64, {f64, c128}},
        {u8, {i16, i32, i64, u16, u32, u64, f16, f32, f64, c64, c128}},
        {u16, {i32, i64, u32, u64, f32, f64, c64, c128}},
        {u32, {i64, u64, f64, c128}},
        {u64, {f64, c128}},
        {f16, {f32, f64, c64, c128}},
        {f32, {f64, c64, c128}},
        {f64, {c128}},
        {bf16, {f32, f64, c64, c128}},
        {f8, {f32, f64, c64, c128}},
        {c64, {c128}},
        {c128, {}},
    };
    for (const auto& [from, wanted] : becomes) {
        for (const dtype to : all) {
            const bool expected = from == to || std::find(wanted.begin(), wanted.end(), to) != wanted.end();
            EXPECT_EQ(can_convert(from, to), expected) << name(from) << " to " << name(to);
        }
    }
}

TEST(CanConvert, NarrowingKeepsSignFractionAndImaginaryPart) {
    using tenon::can_convert;
    const dtype by_kind[][3] = {{{tc::bool_, 8}, {tc::bool_, 8}, {tc::bool_, 8}},
                                {{tc::uint, 8}, {tc::uint, 32}, {tc::uint, 64}},
                                {{tc::int_, 8}, {tc::int_, 16}, {tc::int_, 64}},
                                {{tc::float8_e5m2, 8}, {tc::bfloat, 16}, {tc::float_, 64}},
                                {{tc::complex, 32}, {tc::complex, 64}, {tc::complex, 128}}};
    for (std::size_t from = 0; from < 5; ++from)
        for (std::size_t to = 0; to < 5; ++to)
            for (const dtype f : by_kind[from])
                for (const dtype t : by_kind[to])
                    EXPECT_EQ(can_convert(f, t, true), from <= to) << name(f) << " to " << name(t);
}

TEST(CanConvert, WhatIsNoNumberStaysAsItIs) {
    using tenon::can_convert;
    for (const bool narrowing : {false, true}) {
        EXPECT_TRUE(can_convert({200, 32}, {200, 32}, narrowing));
        EXPECT_FALSE(can_convert({200, 32}, {tc::float_, 64}, narrowing));
        EXPECT_FALSE(can_convert({tc::bool_, 8}, {200, 32}, narrowing));
        EXPECT_FALSE(can_convert({tc::opaque_handle, 64}, {tc::complex, 128}, narrowing));
        EXPECT_FALSE(can_convert({tc::float_, 32, 2}, {tc::float_, 64}, narrowing)) << "lanes";
        EXPECT_TRUE(can_convert({tc::float_, 32, 2}, {tc::float_, 64, 2}, narrowing));
    }
}

TEST(Bool8, AnyNonZeroByteIsTrue) {
    static_assert(sizeof(bool8) == 1 && alignof(bool8) == 1 && std::is_trivially_copyable_v<bool8>);
    for (unsigned value = 0; value < 256; ++value) {
        const auto byte = static_cast<unsigned char>(value);
        bool8 b;
        std::memcpy(&b, &byte, 1);
        EXPECT_EQ(static_cast<bool>(b), value != 0);
    }
}

TEST(Bool8, IsWrittenAsZeroOrOne) {
    EXPECT_EQ(bool8(true).byte, 1);
    EXPECT_EQ(bool8(false).byte, 0);
}

}  // namespace
