// tests/cpp/signature_test.cpp: signatures as binders print them, and worse.

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/bind/signature.hpp>

namespace {

using tenon::bind::element_annotation;
using tenon::bind::is_container;
using tenon::bind::is_mapping;
using tenon::bind::mentions_phrase;
using tenon::bind::parameter_text;
using tenon::bind::phrase_of;
using tenon::bind::read_signature;
using tenon::bind::tuple_parts;
using tenon::bind::union_parts;
using views = std::vector<std::string_view>;

/// "name:annotation", with "=" for a default, stars, and "!" for what is given by its name only.
std::string shown(std::string_view signature) {
    std::string out;
    for (const parameter_text& p : read_signature(signature)) {
        if (!out.empty()) out += "; ";
        out += std::string(static_cast<std::size_t>(p.stars), '*') + std::string(p.name) + ":" +
               std::string(p.annotation) + (p.has_default ? "=" : "") + (p.is_keyword_only ? "!" : "");
    }
    return out;
}

TEST(Signature, Parameters) {
    EXPECT_EQ(shown("f()"), "");
    EXPECT_EQ(shown("f"), "");
    EXPECT_EQ(shown(""), "");
    EXPECT_EQ(shown("f(x)"), "x:");
    EXPECT_EQ(shown("f(x: int, y: str = 'a') -> None"), "x:int; y:str=");
    EXPECT_EQ(shown("(self: m.Model, x: float) -> int"), "self:m.Model; x:float");
    EXPECT_EQ(shown("f(self, n: int, /) -> None"), "self:; n:int");
    EXPECT_EQ(shown("f(a: int, *, b: int = 3, c: int)"), "a:int; b:int=!; c:int!");
    EXPECT_EQ(shown("f(a, *args, b, **kwargs)"), "a:; *args:; b:!; **kwargs:!");
    EXPECT_EQ(shown("f(*args: int, **kwargs: str)"), "*args:int; **kwargs:str!");
}

TEST(Signature, CommasInsideOfAnything) {
    EXPECT_EQ(shown("f(x: dict[str, int], y: tuple[int, tuple[int, str]] = (1, (2, 'a')), z: int)"),
              "x:dict[str, int]; y:tuple[int, tuple[int, str]]=; z:int");
    EXPECT_EQ(shown("f(x: typing.Annotated[numpy.typing.ArrayLike, 'float32[*, 3] on cuda'], y: int)"),
              "x:typing.Annotated[numpy.typing.ArrayLike, 'float32[*, 3] on cuda']; y:int");
    EXPECT_EQ(shown("f(x: str = 'a, b', y: str = \"c: d = e\", z: dict = {'a': [1, 2], 'b)': ')'})"),
              "x:str=; y:str=; z:dict=");
    EXPECT_EQ(shown(R"(f(x: str = 'it\'s, (', y: str = "it's", z: str = '\\', u: str = '"'))"),
              "x:str=; y:str=; z:str=; u:str=");
    EXPECT_EQ(shown("f(x: object = <m.Thing object at 0x7f, 1>, y: int)"), "x:object=; 1>:; y:int")
        << "not a default that can be read, but what follows is not lost";
    EXPECT_EQ(shown("f(g: collections.abc.Callable[[int, str], None], h: Callable[..., int] = f(1, 2))"),
              "g:collections.abc.Callable[[int, str], None]; h:Callable[..., int]=");
}

TEST(Signature, TextThatEndsEarly) {
    const std::string whole =
        "f(x: typing.Annotated[numpy.typing.ArrayLike, 'float32[*, 3]'] = \"a\\\"\", *a, y: str = '(') -> "
        "int";
    for (std::size_t n = 0; n <= whole.size(); ++n) {
        const std::string cut = whole.substr(0, n);
        EXPECT_LE(read_signature(cut).size(), 3U) << cut;
        (void)mentions_phrase(cut);
        for (const std::string_view part : union_parts(cut)) (void)phrase_of(part);
        (void)tuple_parts(cut);
        (void)element_annotation(cut);
    }
    EXPECT_EQ(shown("f(x: int"), "x:int");
    EXPECT_EQ(shown("f(x: str = 'never ends)"), "x:str=");
    EXPECT_EQ(shown("f(]]], x)"), "]]], x):") << "nonsense, but no more than that";
}

TEST(Signature, Phrases) {
    EXPECT_EQ(phrase_of("int"), std::nullopt);
    EXPECT_EQ(phrase_of("typing.Annotated[typing.Any, 'float32[*]']"), std::nullopt);
    EXPECT_EQ(phrase_of("typing.Annotated[numpy.typing.ArrayLike, numpy.float32]"), std::nullopt)
        << "pybind11's own";
    EXPECT_EQ(phrase_of("typing.Annotated[numpy.typing.ArrayLike, 'float32[*, 3], aligned to 64 bytes']"),
              "float32[*, 3], aligned to 64 bytes");
    EXPECT_EQ(phrase_of("numpy.typing.ArrayLike"), "any[...] on any device");
    EXPECT_TRUE(mentions_phrase("list[numpy.typing.ArrayLike]"));
    EXPECT_TRUE(mentions_phrase("int | typing.Annotated[numpy.typing.ArrayLike, 'a[]']"));
    EXPECT_FALSE(mentions_phrase("typing.Annotated[numpy.typing.ArrayLike, numpy.float32]"));
    EXPECT_EQ(union_parts("typing.Annotated[A, 'a[] | b'] | None | dict[str, x | y]"),
              (views{"typing.Annotated[A, 'a[] | b']", "None", "dict[str, x | y]"}));
}

TEST(Signature, Containers) {
    EXPECT_FALSE(is_container("int"));
    EXPECT_FALSE(is_container("typing.Annotated[numpy.typing.ArrayLike, 'list[*]']"));
    for (const auto list : {"list[x]", "collections.abc.Sequence[x]", "set[x]", "tuple[x, y]"}) {
        EXPECT_TRUE(is_container(list)) << list;
        EXPECT_FALSE(is_mapping(list)) << list;
        EXPECT_EQ(element_annotation(list), "x") << list;
    }
    for (const auto dict : {"dict[str, x]", "collections.abc.Mapping[str, x]"}) {
        EXPECT_TRUE(is_container(dict) && is_mapping(dict)) << dict;
        EXPECT_EQ(element_annotation(dict), "x") << dict;
    }
    EXPECT_EQ(element_annotation("list"), "") << "nothing is said of its items";
    EXPECT_EQ(element_annotation("list[]"), "");
    EXPECT_EQ(element_annotation("list[Annotated[ArrayLike, 'a[*, 3]']]"), "Annotated[ArrayLike, 'a[*, 3]']");
    EXPECT_EQ(element_annotation("dict[str, list[x, y]]"), "list[x, y]");
    EXPECT_EQ(tuple_parts("tuple[A['],'], int, tuple[B, C]]"), (views{"A['],']", "int", "tuple[B, C]"}));
    EXPECT_EQ(tuple_parts("tuple[int, ...]"), views{}) << "any length";
    EXPECT_EQ(tuple_parts("list[int]"), views{});
}

}  // namespace
