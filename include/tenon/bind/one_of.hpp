// tenon/bind/one_of.hpp: `tenon::one_of<float, double>`, a set of element types where an array states one.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

#include <tenon/tensor/view.hpp>

namespace tenon {
namespace bind {

[[nodiscard]] constexpr bool are_distinct(auto... types) noexcept {
    const dtype all[] = {types...};
    for (std::size_t i = 0; i < sizeof...(types); ++i)
        for (std::size_t k = 0; k < i; ++k)
            if (all[i] == all[k]) return false;
    return true;
}

}  // namespace bind

/// Any of these element types, of which an array has one: `array<const one_of<float, double>, 2>`.
template <class... T>
struct one_of {
    static_assert(sizeof...(T) != 0, "tenon::one_of: name the element types");
    static_assert(!(std::is_const_v<T> || ...),
                  "tenon::one_of: const stands before the set: const one_of<float, double>");
    static_assert(
        (addressable<T> && ...),
        "tenon::one_of: not an element type that a view can show; bool is tenon::bool8, and a type of "
        "your own needs tenon::dtype_traits");
    static_assert(bind::are_distinct(dtype_of<T>...), "tenon::one_of: two of these are one element type");

    static constexpr std::array<dtype, sizeof...(T)> dtypes{dtype_of<T>...};
};

namespace bind {

template <class T>
inline constexpr bool is_set = false;
template <class... T>
inline constexpr bool is_set<one_of<T...>> = true;
template <class... T>
inline constexpr bool is_set<const one_of<T...>> = true;

/// What a window shows the elements as: those of a set are left open.
template <class T>
using shown_as = std::conditional_t<!is_set<T>, T, std::conditional_t<std::is_const_v<T>, const void, void>>;

}  // namespace bind
}  // namespace tenon
