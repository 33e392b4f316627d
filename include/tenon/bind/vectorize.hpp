// tenon/bind/vectorize.hpp: a function of single numbers, bound as one of arrays: it is called for each
// element, and the shapes broadcast as NumPy's do.
//
//     double hypot3(double x, double y, double z);
//     m.def("hypot3", tenon::vectorize(hypot3), "x"_a, "y"_a, "z"_a);                    // the binders
//     py::function<tenon::vectorized<&hypot3>>("hypot3", {"x", "y", "z"})                // by hand
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <tenon/bind/array.hpp>

namespace tenon::bind {

/// An argument that is walked, and its place among the parameters, counted from 1.
struct walked_argument {
    const tensor_ref* ref;
    PyObject* object;
    std::size_t place;
};
/// Room for the results, of the shape that the arguments broadcast to: an array of the library of the first
/// that has axes, else of the first array, else a number. Throws `py::python_error`.
[[nodiscard]] TENON_API found allocate_results(const walked_argument* arguments, std::size_t count,
                                               dtype type, const request& wanted);

/// A C++ type as arrays have it.
template <class T>
using stored = std::conditional_t<std::same_as<T, bool>, bool8, T>;
/// A parameter of which there is one for each element: a number, taken by value or as a const reference.
template <class P, class T = std::remove_cvref_t<P>>
inline constexpr bool is_walked =
    addressable<stored<T>> && (!std::is_reference_v<P> || std::same_as<P, const T&>);
template <class P, bool = is_walked<P>>
struct parameter_of : std::type_identity<P> {};
template <class P>
struct parameter_of<P, true>
    : std::type_identity<array<const stored<std::remove_cvref_t<P>>, dynamic_rank, numbers, convert>> {};
template <class P>
using vectorized_parameter = typename parameter_of<P>::type;

/// A result: an array of the caller's library, or a number.
template <class R>
using vectorized_result = array<const stored<R>, dynamic_rank, numbers>;

/// Stops the compilation of what cannot be called for each element, with a word on why.
template <class R, class... P>
consteval bool require_vectorizable() {
    static_assert(!std::is_void_v<R>,
                  "tenon::vectorize: the function must return a number for each element; to "
                  "write to arrays bind a function that uses tenon::for_each");
    static_assert(std::is_void_v<R> || addressable<stored<std::remove_cvref_t<R>>>,
                  "tenon::vectorize: the function must return a number, as an array can have for an element");
    static_assert((is_walked<P> || ...),
                  "tenon::vectorize: no parameter is a number, taken by value or as a const reference");
    static_assert(
        ((is_walked<P> || !std::is_rvalue_reference_v<P>) && ...),
        "tenon::vectorize: what is passed on to each call cannot be moved from it: take it by value, "
        "or as a const reference");
    return true;
}

/// A function of such parameters, called for each element.
template <class R, class... P>
class vectorized_call {
    using made = std::remove_cvref_t<R>;
    using arguments = std::tuple<vectorized_parameter<P>&...>;
    /// The places of the parameters that are walked.
    static constexpr std::size_t count = (std::size_t{0} + ... + std::size_t{is_walked<P>});
    static constexpr auto places = [] {
        std::array<std::size_t, count> out{};
        std::size_t place = 0, next = 0;
        ((is_walked<P> ? void(out[next++] = place++) : void(place++)), ...);
        return out;
    }();
    template <std::size_t Walked>
    using element = stored<std::remove_cvref_t<
        typename std::tuple_element_t<places[Walked], std::tuple<std::type_identity<P>...>>::type>>;

    /// What the function is given for a parameter: an element, or what the caller passed.
    template <std::size_t Place, class Elements>
    [[nodiscard]] static auto& pick(const Elements& elements, const arguments& all) noexcept {
        constexpr std::size_t walked = [] {
            std::size_t n = 0;
            while (n < count && places[n] != Place) ++n;
            return n;
        }();
        if constexpr (walked < count)
            return std::get<walked>(elements);
        else
            return std::get<Place>(all);
    }

public:
    template <class F, std::size_t... W, std::size_t... I>
    [[nodiscard]] static vectorized_result<made> run(const F& f, const arguments& all,
                                                     std::index_sequence<W...>, std::index_sequence<I...>) {
        using results = array<stored<made>, dynamic_rank, c_contiguous>;
        const walked_argument walked[] = {{&static_cast<const tensor_ref&>(std::get<places[W]>(all)),
                                           std::get<places[W]>(all).object(), places[W] + 1}...};
        const results out(allocate_results(walked, count, dtype_of<stored<made>>, results::wanted));
        const auto call = [&](const element<W>&... elements, stored<made>& to) {
            const auto each = std::tie(elements...);
            to = static_cast<stored<made>>(f(pick<I>(each, all)...));
        };
        py::or_raise(for_each(broadcast, std::get<places[W]>(all)..., out, call));
        return out;
    }
    template <class F>
    [[nodiscard]] static vectorized_result<made> run(const F& f, vectorized_parameter<P>&... all) {
        return run(f, arguments(all...), std::make_index_sequence<count>{}, std::index_sequence_for<P...>{});
    }
};

/// What `vectorize` gives, for any binder.
template <class F, class R, class... P>
class vectorized_function {
    static_assert(require_vectorizable<R, P...>());

public:
    explicit vectorized_function(F f) : f_(std::move(f)) {}
    vectorized_result<std::remove_cvref_t<R>> operator()(vectorized_parameter<P>... arguments) const {
        return vectorized_call<R, P...>::run(f_, arguments...);
    }

private:
    F f_;
};

/// The function behind a constant: with it a plain function for `py::function`.
template <auto F, class R, class... P>
    requires(require_vectorizable<R, P...>())
vectorized_result<std::remove_cvref_t<R>> call_vectorized(vectorized_parameter<P>... arguments) {
    return vectorized_call<R, P...>::run(F, arguments...);
}

/// The signature of what can be called in one way, as a pointer.
template <class F>
struct called;
template <class R, class... P>
struct called<R (*)(P...)> {
    using signature = R (*)(P...);
    template <class F>
    using function = vectorized_function<F, R, P...>;
    template <auto F>
    static constexpr auto constant = &call_vectorized<F, R, P...>;
};
template <class R, class... P>
struct called<R (*)(P...) noexcept> : called<R (*)(P...)> {};
template <class R, class C, class... P>
struct called<R (C::*)(P...) const> : called<R (*)(P...)> {};
template <class R, class C, class... P>
struct called<R (C::*)(P...) const noexcept> : called<R (*)(P...)> {};
template <class F>
    requires requires { &F::operator(); }
struct called<F> : called<decltype(&F::operator())> {};

template <class F>
concept called_in_one_way = requires { typename called<std::decay_t<F>>::signature; };

}  // namespace tenon::bind

namespace tenon {

/// The function as one of arrays, for `def` of nanobind and pybind11. Parameters that are numbers, taken by
/// value or as const references, become arrays, or numbers, of any library and shape; the shapes broadcast.
/// What is none is passed on to each call. The result is an array of the library of the first argument that
/// has axes; of numbers alone it is a number.
template <class F>
[[nodiscard]] auto vectorize(F&& f) {
    static_assert(
        bind::called_in_one_way<F>,
        "tenon::vectorize: give a function, or an object with one operator(), const and no template");
    if constexpr (bind::called_in_one_way<F>) {
        using function = typename bind::called<std::decay_t<F>>::template function<std::decay_t<F>>;
        return function(std::forward<F>(f));
    }
}

/// The same of a constant, for `py::function`: `py::function<tenon::vectorized<&f>>("f", {"x", "y"})`.
template <auto F>
    requires bind::called_in_one_way<decltype(F)>
inline constexpr auto vectorized = bind::called<std::decay_t<decltype(F)>>::template constant<F>;

}  // namespace tenon
