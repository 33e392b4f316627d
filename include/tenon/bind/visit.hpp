// tenon/bind/visit.hpp: what `tenon::visit` is made of: a function is called with arrays of one of several
// element types, each as an array of the type it has.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <type_traits>

#include <tenon/bind/argument.hpp>
#include <tenon/bind/one_of.hpp>

namespace tenon {

template <class T, auto Extents, class... Props>
class array;

namespace bind {

template <class... T>
struct type_list {};
template <class... A, class... B>
[[nodiscard]] consteval type_list<A..., B...> operator+(type_list<A...>, type_list<B...>) noexcept {
    return {};
}

// --- what the function is called with ---------------------------------------------------------------------

/// The arrays that an argument may turn out to be.
template <class X>
struct typed_arrays {
    using type = type_list<X>;
};
template <class... T, auto Extents, class... Props>
struct typed_arrays<array<one_of<T...>, Extents, Props...>> {
    using type = type_list<array<T, Extents, Props...>...>;
};
template <class... T, auto Extents, class... Props>
struct typed_arrays<array<const one_of<T...>, Extents, Props...>> {
    using type = type_list<array<const T, Extents, Props...>...>;
};

/// One of them is of several element types.
template <class... X>
inline constexpr bool are_open = (!std::same_as<typename typed_arrays<X>::type, type_list<X>> || ...);

/// Every way to choose one type of each list.
template <class... Chosen>
[[nodiscard]] consteval auto combine(type_list<Chosen...> chosen) noexcept {
    return type_list<decltype(chosen)>();
}
template <class... Chosen, class... T, class... Rest>
[[nodiscard]] consteval auto combine(type_list<Chosen...>, type_list<T...>, Rest... rest) noexcept {
    return (type_list<>() + ... + combine(type_list<Chosen..., T>(), rest...));
}

/// The way, if `F` can be called so.
template <class F, class... A>
[[nodiscard]] consteval auto if_taken(type_list<A...> way) noexcept {
    if constexpr (std::is_invocable_v<F&, A...>)
        return type_list<decltype(way)>();
    else
        return type_list<>();
}
template <class F, class... Ways>
[[nodiscard]] consteval auto those_taken(type_list<Ways...>) noexcept {
    return (type_list<>() + ... + if_taken<F>(Ways()));
}

// --- what it returns --------------------------------------------------------------------------------------

template <class T>
struct elements_of {
    using type = type_list<T>;
};
template <class... T>
struct elements_of<one_of<T...>> {
    using type = type_list<T...>;
};

template <class T, class... A>
[[nodiscard]] consteval auto with_element(type_list<A...> set) noexcept {
    if constexpr (((dtype_of<A> == dtype_of<T>) || ...))
        return set;
    else
        return type_list<A..., T>();
}
/// The set of both.
template <class... A>
[[nodiscard]] consteval auto join_sets(type_list<A...>, type_list<>) noexcept {
    return std::type_identity<one_of<A...>>();
}
template <class... A, class T, class... Rest>
[[nodiscard]] consteval auto join_sets(type_list<A...> set, type_list<T, Rest...>) noexcept {
    return join_sets(with_element<T>(set), type_list<Rest...>());
}
template <class A, class B>
using joined_set = typename decltype(join_sets(typename elements_of<std::remove_cv_t<A>>::type(),
                                               typename elements_of<std::remove_cv_t<B>>::type()))::type;

/// The one type for two results.
template <class A, class B>
struct united {
    static_assert(
        std::same_as<A, B>,
        "tenon::visit: the function must always return the same type, or arrays that differ in their "
        "element types alone");
    using type = A;
};
template <class T, class U, auto Extents, class... Props>
    requires(!std::same_as<T, U> && std::is_const_v<T> == std::is_const_v<U> && !std::is_void_v<T> &&
             !std::is_void_v<U>)
struct united<array<T, Extents, Props...>, array<U, Extents, Props...>> {
    using set = joined_set<T, U>;
    using type = array<std::conditional_t<std::is_const_v<T>, const set, set>, Extents, Props...>;
};

template <class First, class... Rest>
struct common_result {
    using type = First;
};
template <class First, class Second, class... Rest>
struct common_result<First, Second, Rest...> : common_result<typename united<First, Second>::type, Rest...> {
};

template <class F, class Way>
struct result_of_way;
template <class F, class... A>
struct result_of_way<F, type_list<A...>> : std::invoke_result<F&, A...> {};

template <class F, class... Ways>
[[nodiscard]] consteval auto result_of_ways(type_list<Ways...>) noexcept {
    static_assert(sizeof...(Ways) != 0,
                  "tenon::visit: the function takes these arrays with none of their element types");
    if constexpr (sizeof...(Ways) != 0)
        return std::type_identity<typename common_result<typename result_of_way<F, Ways>::type...>::type>();
    else
        return std::type_identity<void>();
}

// --- the call ---------------------------------------------------------------------------------------------

/// Raises an error of `visit`'s, or TypeError for element types that a function does not take together.
[[noreturn]] TENON_API void raise_not_taken(const error& e);
[[noreturn]] TENON_API void raise_not_together(const dtype* got, std::size_t count);

/// A call of `F` with arrays of these types, each as one of the element type it has.
template <class F, class... X>
struct visiting {
    using ways = decltype(those_taken<F>(combine(type_list<>(), typename typed_arrays<X>::type()...)));
    using type = typename decltype(result_of_ways<F>(ways()))::type;

    static type run(F& f, const X&... x) { return try_ways(ways(), f, x...); }

private:
    template <class Typed, class Array>
    [[nodiscard]] static bool is_of_type(const Array& x) noexcept {
        if constexpr (std::same_as<Typed, Array>)
            return true;
        else
            return x.dtype() == dtype_of<typename Typed::element_type>;
    }
    template <class... A, class... Rest>
    static type try_ways(type_list<type_list<A...>, Rest...>, F& f, const X&... x) {
        if ((is_of_type<A>(x) && ...)) return static_cast<type>(f(x.template as_typed<A>()...));
        return try_ways(type_list<Rest...>(), f, x...);
    }
    [[noreturn]] static type try_ways(type_list<>, F&, const X&... x) { refuse(x...); }

    /// Of one array the error says which types are taken, of several which have come.
    [[noreturn]] static void refuse(const X&... x) {
        if constexpr (sizeof...(X) == 1) {
            static constexpr auto taken = elements_taken(ways());
            const tensor_ref& only = (x, ...);
            raise_not_taken(not_taken("this function takes", taken.data(), taken.size(), only.dtype())
                                .of_shape(only.shape().data()));
        } else {
            const dtype got[] = {x.dtype()...};
            raise_not_together(got, sizeof...(X));
        }
    }
    template <class... Typed>
    [[nodiscard]] static consteval auto elements_taken(type_list<type_list<Typed>...>) noexcept {
        return std::array<dtype, sizeof...(Typed)>{dtype_of<typename Typed::element_type>...};
    }
};

}  // namespace bind
}  // namespace tenon
