// tests/cpp/annotation_test.cpp: a request as the type that signatures give it.

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include <tenon/bind/annotation.hpp>

#include "support.hpp"

namespace {

using namespace tenon_test;
using tenon::request;
using tenon::bind::annotate;
using tenon::bind::annotate_result;
using tenon::bind::conversions;

std::string taken(const request& r, conversions converts = conversions::none) {
    return std::string(annotate(r, converts).view());
}

TEST(Annotation, NamesTheElementTypeAsNumPyDoes) {
    constexpr auto host = tenon::memory_space::host;
    EXPECT_EQ(taken({.type = tenon::dtype_of<float>, .rank = 1, .space = host}),
              "tenon.typing.Array[numpy.float32, typing.Literal['float32[*]']]");
    EXPECT_EQ(taken({.type = tenon::dtype_of<bool>, .rank = 0, .space = host}),
              "tenon.typing.Array[numpy.bool_, typing.Literal['bool[]']]");
}

TEST(Annotation, IsAnyWhereNumPyHasNoneOrAnyWillDo) {
    const tenon::dtype bfloat16{tenon::abi::type_code::bfloat, 16};
    EXPECT_EQ(taken({}), "tenon.typing.Array[typing.Any, typing.Literal['any[...] on any device']]");
    EXPECT_EQ(taken({.type = bfloat16, .rank = 1, .space = tenon::memory_space::host}),
              "tenon.typing.Array[typing.Any, typing.Literal['bfloat16[*]']]");
    EXPECT_EQ(taken({.type = tenon::dtype_of<float>, .space = tenon::memory_space::host}, conversions::safe),
              "tenon.typing.Array[typing.Any, typing.Literal['float32[...], or convertible']]");
}

TEST(Annotation, OfAResultSaysNoLibrary) {
    EXPECT_EQ(
        annotate_result({.type = tenon::dtype_of<double>, .rank = 2, .space = tenon::memory_space::host})
            .view(),
        "typing.Annotated[typing.Any, 'float64[*, *]']");
}

}  // namespace
