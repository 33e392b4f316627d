// tests/cpp/number_test.cpp: elements as numbers: every kind, the edges of each format, and what is none.
#include "../../src/value/number.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

#include <tenon/value/dtype_names.hpp>

namespace {

using tenon::dtype;
using tenon::number;
using tenon::read_number;
namespace code = tenon::abi::type_code;

template <class T>
number read(T value) {
    return read_number(tenon::dtype_of<T>, &value).value();
}

double real(dtype type, std::uint16_t bits) { return read_number(type, &bits).value().real; }

TEST(Number, Integers) {
    EXPECT_EQ(read(std::int8_t{-128}).integer, -128);
    EXPECT_EQ(read(std::numeric_limits<std::int64_t>::min()).integer,
              std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(read(std::uint32_t{4000000000U}).integer, 4000000000);
    const number largest = read(~std::uint64_t{0});
    EXPECT_EQ(largest.is, number::kind::natural);
    EXPECT_EQ(static_cast<std::uint64_t>(largest.integer), ~std::uint64_t{0});
    const std::uint8_t byte = 0xF9;
    EXPECT_EQ(read_number(dtype(code::int_, 4), &byte)->integer, -7);
    EXPECT_EQ(read_number(dtype(code::uint, 4), &byte)->integer, 9);
    EXPECT_EQ(read_number(dtype(code::int_, 2), &byte)->integer, 1);
}

TEST(Number, EveryByteButZeroIsTrue) {
    for (unsigned i = 0; i < 256; ++i) {
        const auto byte = static_cast<std::uint8_t>(i);
        const number n = read_number(tenon::dtype_of<bool>, &byte).value();
        EXPECT_EQ(n.is, number::kind::boolean);
        EXPECT_EQ(n.integer, i != 0 ? 1 : 0);
    }
}

TEST(Number, Floats) {
    EXPECT_EQ(read(1.5F).real, 1.5);
    EXPECT_EQ(read(-0.1).real, -0.1);
    const dtype half(code::float_, 16);
    EXPECT_EQ(real(half, 0x3C00), 1.0);
    EXPECT_EQ(real(half, 0xFBFF), -65504.0);
    EXPECT_EQ(real(half, 0x0001), std::ldexp(1.0, -24));
    EXPECT_EQ(real(half, 0x7C00), std::numeric_limits<double>::infinity());
    EXPECT_TRUE(std::isnan(real(half, 0x7E00)));
    EXPECT_TRUE(std::signbit(real(half, 0x8000)));
    EXPECT_EQ(real(dtype(code::bfloat, 16), 0xC040), -3.0);
    EXPECT_EQ(real(dtype(code::float8_e4m3fn, 8), 0x7E), 448.0);
    EXPECT_TRUE(std::isnan(real(dtype(code::float8_e4m3fn, 8), 0x7F)));
    EXPECT_TRUE(std::isnan(real(dtype(code::float8_e4m3fnuz, 8), 0x80)));
    EXPECT_EQ(real(dtype(code::float8_e8m0fnu, 8), 127), 1.0);
    EXPECT_EQ(real(dtype(code::float4_e2m1fn, 4), 0xF7), 6.0) << "only the low bits";
    EXPECT_EQ(real(dtype(code::float6_e3m2fn, 6), 0x3F), -28.0);
}

TEST(Number, Complex) {
    const number n = read(std::complex<float>(1.5F, -2.0F));
    EXPECT_EQ(n.is, number::kind::complex);
    EXPECT_EQ(n.real, 1.5);
    EXPECT_EQ(n.imaginary, -2.0);
    const std::uint16_t halves[2] = {0x3F80, 0xC040};
    const number newer = read_number(dtype(18, 32), halves).value();
    EXPECT_EQ(newer.real, 1.0);
    EXPECT_EQ(newer.imaginary, -3.0);
}

TEST(Number, EveryTypeOfTheTableButHandlesAndVectors) {
    const std::uint64_t memory[4] = {};
    for (const tenon::dtype_entry& e : tenon::detail::dtype_table) {
        const bool is_number = e.type.lanes == 1 && e.type.code != code::opaque_handle;
        EXPECT_EQ(read_number(e.type, memory).has_value(), is_number) << e.name;
    }
    EXPECT_FALSE(read_number(dtype(42, 8), memory));
    EXPECT_FALSE(read_number(dtype(code::int_, 24), memory));
    EXPECT_FALSE(read_number(dtype(code::complex, 48), memory));
    EXPECT_FALSE(read_number(dtype(code::bool_, 1), memory));
}

}  // namespace
