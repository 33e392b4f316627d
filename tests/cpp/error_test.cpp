// tests/cpp/error_test.cpp: errors say field, axis, values and advice; results hold one side, move-only
// values too.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <tenon/value/dtype.hpp>
#include <tenon/value/error.hpp>

namespace {

using tenon::errc;
using tenon::error;
using tenon::result;

static_assert(std::is_trivially_copyable_v<error>, "an error is made on any path, without allocation");
static_assert(std::is_trivially_copyable_v<result<void>>);
static_assert(std::is_nothrow_move_constructible_v<result<int>>);
static_assert(!std::is_convertible_v<result<int>, bool>, "a result never turns into a number silently");
static_assert(!std::is_convertible_v<result<void>, bool>);

TEST(Error, SentenceHasEveryPart) {
    const error e = tenon::refused("shape", "the wrong extent", 3, 4).at_axis(2).with_advice("reshape it");
    EXPECT_EQ(e.code, errc::refused);
    EXPECT_EQ(e.message(), "shape[2]: the wrong extent (got 3, expected 4); reshape it");
}

TEST(Error, PartsThatAreAbsentLeaveNoTrace) {
    EXPECT_EQ(tenon::malformed("shape", "bad").message(), "shape: bad");
    EXPECT_EQ(tenon::malformed("ndim", "negative", -1).message(), "ndim: negative (got -1)");
    EXPECT_EQ(tenon::refused("dtype", "no").message(), "dtype: no");
    EXPECT_EQ(tenon::refused("dtype", "no", 0).message(), "dtype: no (got 0)");
    EXPECT_EQ(tenon::refused("", "just a sentence").message(), "just a sentence");
    EXPECT_EQ(tenon::malformed("shape", "bad").at_axis(0).message(), "shape[0]: bad");
}

TEST(Error, BitsArePrintedInHexadecimal) {
    EXPECT_EQ(tenon::refused_bits("flags", "unknown", 0x8000000000000010ULL).message(),
              "flags: unknown (got 0x8000000000000010)");
    EXPECT_EQ(tenon::refused_bits("flags", "unknown", 0).message(), "flags: unknown (got 0x0)");
    EXPECT_EQ(tenon::refused_bits("flags", "unknown", 0xdeadbeef).message(),
              "flags: unknown (got 0xdeadbeef)");
}

TEST(Error, DevicesArePrintedByName) {
    const error e = tenon::refused("device", "elsewhere", tenon::device{2, 1}, tenon::device{1, 0});
    EXPECT_EQ(e.message(), "device: elsewhere (got cuda:1, expected cpu)");
    EXPECT_EQ(
        tenon::refused("device", "x", tenon::device{-1, -2}, tenon::device{INT32_MAX, INT32_MIN}).message(),
        "device: x (got device(-1):-2, expected device(2147483647):-2147483648)");
}

TEST(Error, ElementTypesArePrintedByName) {
    static constexpr tenon::dtype taken[] = {tenon::dtype_of<float>, tenon::dtype_of<double>, {0, 64}};
    const auto sentence = [](std::size_t count, tenon::dtype got) {
        return tenon::not_taken("this function takes", taken, count, got).message();
    };
    EXPECT_EQ(sentence(1, {0, 8}), "dtype: this function takes float32, got int8");
    EXPECT_EQ(sentence(2, {0, 8}), "dtype: this function takes float32 or float64, got int8");
    EXPECT_EQ(
        sentence(3, {200, 255, 65535}),
        "dtype: this function takes float32, float64 or int64, got dtype(code=200, bits=255, lanes=65535)");
    EXPECT_EQ(tenon::not_taken("", taken, 1, {}).code, errc::not_taken);
    EXPECT_EQ(
        tenon::refused("dtype", "another", tenon::dtype{200, 255, 65535}, tenon::dtype{2, 32}).message(),
        "dtype: another (got dtype(code=200, bits=255, lanes=65535), expected float32)");
}

TEST(Error, TheTensorAtFaultCanBeFound) {
    const std::int64_t shape[] = {2, 3};
    EXPECT_EQ(tenon::refused("a", "b").about, nullptr);
    EXPECT_EQ(tenon::refused("a", "b").of_shape(shape).at_axis(1).about, shape);
}

TEST(Error, OneOfSeveralTensorsIsNamed) {
    EXPECT_EQ(tenon::refused("shape", "bad", 3).of_tensor(2).at_axis(0).message(),
              "tensor 2: shape[0]: bad (got 3)");
    EXPECT_EQ(tenon::refused("", "just a sentence").of_tensor(1).message(), "tensor 1: just a sentence");
}

TEST(Error, ExtremeNumbersPrint) {
    EXPECT_EQ(tenon::malformed("stride", "far", INT64_MIN).message(),
              "stride: far (got -9223372036854775808)");
    EXPECT_EQ(tenon::malformed("stride", "far", INT64_MAX).message(),
              "stride: far (got 9223372036854775807)");
}

TEST(Error, MakersSetTheirCode) {
    EXPECT_EQ(tenon::malformed("a", "b").code, errc::malformed);
    EXPECT_EQ(tenon::malformed("a", "b", 1).code, errc::malformed);
    EXPECT_EQ(tenon::refused("a", "b").code, errc::refused);
    EXPECT_EQ(tenon::refused("a", "b", 1).code, errc::refused);
    EXPECT_EQ(tenon::refused("a", "b", 1, 2).code, errc::refused);
    EXPECT_EQ(tenon::refused_bits("a", "b", 1).code, errc::refused);
    EXPECT_EQ(tenon::out_of_memory("copy").code, errc::no_memory);
    EXPECT_EQ(tenon::out_of_memory("copy").message(), "copy: out of memory");
}

TEST(Error, RefinementsCopyAndKeepTheRest) {
    const error first = tenon::refused("a", "b", 1, 2);
    const error second = first.at_axis(5).with_advice("c");
    EXPECT_EQ(first.axis, -1);
    EXPECT_EQ(first.advice, nullptr);
    EXPECT_EQ(second.axis, 5);
    EXPECT_STREQ(second.advice, "c");
    EXPECT_EQ(second.got, 1);
    EXPECT_EQ(second.wanted, 2);
    EXPECT_EQ(second.detail, error::detail_kind::got_wanted);
}

TEST(Result, HoldsAValue) {
    result<int> r = 7;
    ASSERT_TRUE(r);
    EXPECT_TRUE(r.has_value());
    EXPECT_EQ(*r, 7);
    *r = 8;
    EXPECT_EQ(std::as_const(r).value(), 8);
}

TEST(Result, HoldsAnError) {
    const result<int> r = tenon::malformed("shape", "bad", 9);
    ASSERT_FALSE(r);
    EXPECT_FALSE(r.has_value());
    EXPECT_EQ(r.error().got, 9);
    EXPECT_EQ(r.error().code, errc::malformed);
}

TEST(Result, CarriesMoveOnlyValues) {
    result<std::unique_ptr<int>> r = std::make_unique<int>(3);
    ASSERT_TRUE(r);
    EXPECT_EQ(**r, 3);
    result<std::unique_ptr<int>> moved = std::move(r);
    ASSERT_TRUE(moved);
    const std::unique_ptr<int> out = *std::move(moved);
    EXPECT_EQ(*out, 3);
    static_assert(!std::is_copy_constructible_v<result<std::unique_ptr<int>>>);
}

TEST(Result, ArrowReachesTheValue) {
    result<std::string> r = std::string("abc");
    EXPECT_EQ(r->size(), 3U);
    EXPECT_EQ(std::as_const(r)->size(), 3U);
    EXPECT_EQ(std::move(r).value(), "abc");
}

TEST(Result, AssignmentSwitchesSides) {
    result<std::string> r = tenon::refused("a", "b");
    r = result<std::string>(std::string("now a value"));
    ASSERT_TRUE(r);
    r = result<std::string>(tenon::malformed("c", "d"));
    ASSERT_FALSE(r);
    EXPECT_STREQ(r.error().field, "c");
}

TEST(ResultOfVoid, SuccessAndError) {
    constexpr result<void> good;
    static_assert(good.has_value() && static_cast<bool>(good));
    const result<void> bad = tenon::refused("ndim", "no", 4, 2);
    ASSERT_FALSE(bad);
    EXPECT_FALSE(bad.has_value());
    EXPECT_EQ(bad.error().message(), "ndim: no (got 4, expected 2)");
}

TEST(ResultOfVoid, CopiesKeepTheirSide) {
    const result<void> bad = tenon::malformed("a", "b");
    result<void> copy = bad;
    EXPECT_FALSE(copy);
    EXPECT_STREQ(copy.error().field, "a");
    copy = result<void>{};
    EXPECT_TRUE(copy);
    copy = bad;
    EXPECT_STREQ(copy.error().problem, "b");
}

}  // namespace
