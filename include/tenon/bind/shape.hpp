// tenon/bind/shape.hpp: the shape that an array states: an extent for each axis, which may be any, and may
// have a name that relates it to others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <tenon/tensor/request.hpp>

namespace tenon {
namespace bind {

/// An extent in a `tenon::shape`: a number, `any`, or a name. One name stands for one number in all the
/// parameters of a function.
struct extent {
    static constexpr std::size_t longest = 15;

    consteval extent(std::int64_t number) noexcept : size(number) {}  // NOLINT(google-explicit-constructor)
    template <std::size_t N>
    consteval extent(
        const char (&word)[N]) noexcept {  // NOLINT(google-explicit-constructor): as a template argument
        static_assert(N > 1 && N <= longest + 1, "tenon::shape: the name of an extent has 1 to 15 letters");
        for (std::size_t i = 0; i < N; ++i) name[i] = word[i];
    }

    std::int64_t size = any;
    char name[longest + 1] = {};
};

/// The extents of an array, and their names: empty where one has none.
template <extent... Extents>
struct shape_pattern {
    static_assert(((Extents.size >= any) && ...),
                  "tenon::shape: an extent is a number, tenon::any, or a name (shape<\"n\", 3>)");
    static constexpr int rank = static_cast<int>(sizeof...(Extents));
    static constexpr std::array<std::int64_t, sizeof...(Extents)> extents{Extents.size...};
    static constexpr bool has_names = ((Extents.name[0] != '\0') || ... || false);
    static constexpr std::array<const char*, sizeof...(Extents)> names{&Extents.name[0]...};
    friend constexpr bool operator==(shape_pattern, shape_pattern) noexcept = default;
};

}  // namespace bind

/// A shape for `array`: `shape<any, 3>` is any number of rows of three, `shape<"n", 3>` as many of them as
/// there are in each other parameter with an extent of that name.
template <bind::extent... Extents>
inline constexpr bind::shape_pattern<Extents...> shape{};

}  // namespace tenon
