// tests/cpp/annotation_test.cpp: a request as the type that signatures give it.

#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <string>

#include <tenon/bind/annotation.hpp>

#include "support.hpp"

namespace {

using namespace tenon_test;
using tenon::request;
using tenon::bind::annotate;
using tenon::bind::annotated_result;
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

TEST(Annotation, NamesEachTypeOfASet) {
    static constexpr tenon::dtype known[] = {tenon::dtype_of<float>, tenon::dtype_of<std::int32_t>};
    static constexpr tenon::dtype partly[] = {tenon::dtype_of<float>, {tenon::abi::type_code::bfloat, 16}};
    request set{.rank = 1, .space = tenon::memory_space::host, .types = known};
    EXPECT_EQ(taken(set),
              "tenon.typing.Array[numpy.float32 | numpy.int32, typing.Literal['float32|int32[*]']]");
    set.types = partly;
    EXPECT_EQ(taken(set), "tenon.typing.Array[typing.Any, typing.Literal['float32|bfloat16[*]']]");
}

TEST(Annotation, SaysWhichNumbersAreTaken) {
    const auto with_numbers = [](tenon::dtype type) {
        const request r{.type = type, .space = tenon::memory_space::host};
        const std::string all(annotate(r, conversions::none, true).view());
        EXPECT_NE(all.find(", or a number']]"), std::string::npos) << all;
        return all.substr(all.find("]] | ") + 5);
    };
    EXPECT_EQ(with_numbers(tenon::dtype_of<float>), "float");
    EXPECT_EQ(with_numbers(tenon::dtype_of<std::uint8_t>), "int");
    EXPECT_EQ(with_numbers(tenon::dtype_of<bool>), "bool");
    EXPECT_EQ(with_numbers(tenon::dtype_of<std::complex<double>>), "complex");
}

TEST(Annotation, NamesExtents) {
    static constexpr const char* names[] = {"n", "", "k"};
    static constexpr std::int64_t shape[] = {tenon::any, 3, tenon::any};
    const request r{
        .type = tenon::dtype_of<float>, .rank = 3, .space = tenon::memory_space::host, .shape = shape};
    EXPECT_EQ(annotate(r, conversions::none, false, names).view(),
              "tenon.typing.Array[numpy.float32, typing.Literal['float32[n, 3, k]']]");
}

TEST(Annotation, OfAResultSaysNoLibrary) {
    constexpr auto text = annotated_result<13>("float64[*, *]");
    EXPECT_EQ(text.view(), "typing.Annotated[typing.Any, 'float64[*, *]']");
}

}  // namespace
