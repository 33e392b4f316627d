// tests/cpp/signature_test.cpp: signatures as binders print them, and worse.

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include <tenon/bind/signature.hpp>

namespace {

using tenon::bind::container_kind;
using tenon::bind::parameter_text;
using tenon::bind::phrases_in;
using tenon::bind::read_container;
using tenon::bind::read_signature;
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
        (void)phrases_in(cut);
        (void)read_container(cut);
    }
    EXPECT_EQ(shown("f(x: int"), "x:int");
    EXPECT_EQ(shown("f(x: str = 'never ends)"), "x:str=");
    EXPECT_EQ(shown("f(]]], x)"), "]]], x):") << "nonsense, but no more than that";
}

TEST(Signature, Phrases) {
    EXPECT_EQ(phrases_in("int"), views{});
    EXPECT_EQ(phrases_in("typing.Annotated[typing.Any, 'float32[*]']"), views{});
    EXPECT_EQ(phrases_in("typing.Annotated[numpy.typing.ArrayLike, 'float32[*, 3], aligned to 64 bytes']"),
              views{"float32[*, 3], aligned to 64 bytes"});
    EXPECT_EQ(phrases_in("typing.Annotated[ArrayLike, 'a[]'] | typing.Annotated[ArrayLike, 'b[]'] | None"),
              (views{"a[]", "b[]"}));
    EXPECT_EQ(phrases_in("numpy.typing.ArrayLike"), views{"any[...] on any device"});
    EXPECT_EQ(phrases_in("list[numpy.typing.ArrayLike]"), views{"any[...] on any device"});
}

TEST(Signature, Containers) {
    const auto kind = [](std::string_view annotation) { return read_container(annotation).kind; };
    const auto elements = [](std::string_view annotation) { return read_container(annotation).elements; };
    EXPECT_EQ(kind("int"), container_kind::none);
    EXPECT_EQ(kind("typing.Annotated[numpy.typing.ArrayLike, 'list[*]']"), container_kind::none);
    EXPECT_EQ(kind("list"), container_kind::none) << "nothing is said of its items";
    EXPECT_EQ(kind("list[]"), container_kind::none);
    for (const auto list : {"list[x]", "collections.abc.Sequence[x]", "typing.List[x]", "set[x]"})
        EXPECT_EQ(kind(list), container_kind::list) << list;
    for (const auto dict : {"dict[str, x]", "collections.abc.Mapping[str, x]", "Dict[str, x]"})
        EXPECT_EQ(kind(dict), container_kind::dict) << dict;
    EXPECT_EQ(kind("tuple[x, y]"), container_kind::tuple);
    EXPECT_EQ(elements("list[Annotated[ArrayLike, 'a[*, 3]']] | None"),
              views{"Annotated[ArrayLike, 'a[*, 3]']"});
    EXPECT_EQ(elements("dict[str, list[x, y]]"), (views{"str", "list[x, y]"}));
    EXPECT_EQ(elements("tuple[A['],'], int, tuple[B, C]]"), (views{"A['],']", "int", "tuple[B, C]"}));
}

}  // namespace
