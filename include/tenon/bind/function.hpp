// tenon/bind/function.hpp: a C++ function as a method of a module written by hand, without a binder.
//
//     array<float, 1> scale(array<const float, 1> x, float s);
//     PyMethodDef methods[] = {py::function<&scale>("scale", {"x", {"s", 2.0}}), {}};
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <tenon/detail/config.hpp>  // first: flags that cannot work are said in few lines

#include <tenon/bind/value.hpp>

namespace tenon::py {

/// A parameter's name, and the value it has when the caller leaves it out: a number, a truth value, text, or
/// `nullptr` for None.
struct parameter {
    using default_value =
        std::variant<std::monostate, std::nullptr_t, bool, std::int64_t, std::uint64_t, double, const char*>;

    parameter(const char* n) noexcept : name(n) {}  // NOLINT(google-explicit-constructor)
    template <class V>
        requires(std::is_arithmetic_v<V> || std::is_convertible_v<V, const char*>)
    parameter(const char* n, V v) noexcept : name(n) {
        if constexpr (std::is_same_v<V, bool> || std::is_same_v<V, std::nullptr_t>)
            value = v;
        else if constexpr (!std::is_arithmetic_v<V>)
            text(v);
        else if constexpr (std::is_floating_point_v<V>)
            value = static_cast<double>(v);
        else if constexpr (std::is_unsigned_v<V>)
            value = static_cast<std::uint64_t>(v);
        else
            value = static_cast<std::int64_t>(v);
    }

    const char* name;
    default_value value;

private:
    void text(const char* words) noexcept {
        value = nullptr;
        if (words != nullptr) value = words;
    }
};

namespace detail {

/// What is known of a function beyond its C++ type, for as long as the process lives.
struct function_record;

/// Makes the record, with the types and the annotations of the parameters, and behind these the result's.
[[nodiscard]] TENON_API PyMethodDef define_function(const function_record*& made, const char* name,
                                                    std::span<const parameter> parameters, const char* doc,
                                                    const bind::parameter_type* const* types,
                                                    std::span<const std::string> annotations,
                                                    PyCFunction call);

/// Puts the arguments of a call in the places of the parameters, those that are missing as their defaults,
/// which `made` keeps. False with an exception set.
[[nodiscard]] TENON_API bool place_arguments(const function_record& function, PyObject* const* args,
                                             Py_ssize_t positional, PyObject* names, PyObject** out,
                                             ref* made) noexcept;

/// Raises TypeError for an argument that was refused: the reason if it is an array, else what it should be.
TENON_API void raise_refused(const function_record& function, std::size_t index, PyObject* obj) noexcept;

/// Says in the pending exception which argument it is about.
TENON_API void name_arguments(const function_record& function, const python_error& e,
                              std::span<const bind::loaded> arguments) noexcept;

/// One registered function: `Tag` tells apart several that are made of one C++ function.
template <auto F, class Tag, class Signature>
class method;

template <auto F, class Tag, class Return, class... Args>
class method<F, Tag, Return (*)(Args...)> {
public:
    static constexpr std::size_t count = sizeof...(Args);

    [[nodiscard]] static PyMethodDef define(const char* name, std::span<const parameter> parameters,
                                            const char* doc) {
        const std::string annotations[] = {bind::annotation_of<Args>()...,
                                           bind::annotation_of<Return, true>()};
        return define_function(record_, name, parameters, doc, bind::types_of<Args...>, annotations,
                               reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call)));
    }

private:
    static PyObject* call(PyObject*, PyObject* const* args, Py_ssize_t positional, PyObject* names) noexcept
        try {
        if (names == nullptr && positional == static_cast<Py_ssize_t>(count)) [[likely]]
            return run(args, std::index_sequence_for<Args...>{});
        std::array<PyObject*, count + 1> placed{};
        std::array<ref, count + 1> made;
        if (!place_arguments(*record_, args, positional, names, placed.data(), made.data())) return nullptr;
        return run(placed.data(), std::index_sequence_for<Args...>{});
    } catch (...) {
        raise_caught();
        return nullptr;
    }

    struct no_notes {};
    /// An item of a list is noted for a call that looks at it; an argument by itself needs no more than room.
    static constexpr bool keeps_notes = (bind::contains_arrays<std::remove_cvref_t<Args>> || ...);

    template <std::size_t... I>
    static PyObject* run([[maybe_unused]] PyObject* const* args, std::index_sequence<I...>) {
        [[maybe_unused]] const std::conditional_t<keeps_notes, bind::call_frame, no_notes> notes;
        std::tuple<bind::room_for<Args>...> rooms;
        if (!(load<Args>(std::get<I>(rooms), args[I], I) && ...)) [[unlikely]]
            return nullptr;
        const int unfit = bind::settle_together(std::get<I>(rooms)...);
        if (unfit >= 0) raise_refused(*record_, static_cast<std::size_t>(unfit), args[unfit]);
        if (unfit != -1) [[unlikely]]
            return nullptr;
        try {
            if constexpr (std::is_void_v<Return>) {
                authors_code([&] { F(bind::pass<Args>(std::get<I>(rooms))...); });
                return PyErr_Occurred() == nullptr ? ref::borrow(Py_None).release() : nullptr;
            } else if constexpr (bind::is_array<Return>) {
                const auto call = [&]() -> Return { return F(bind::pass<Args>(std::get<I>(rooms))...); };
                return authors_code([&] {
                           return bind::call_for_array<Return, bind::no_guard>(call, std::get<I>(rooms)...);
                       })
                    .object;
            } else {
                return bind::to_object(
                    authors_code([&]() -> Return { return F(bind::pass<Args>(std::get<I>(rooms))...); }));
            }
        } catch (const python_error& e) {
            if constexpr (sizeof...(I) != 0) {
                const bind::loaded all[] = {bind::loaded_in(std::get<I>(rooms))...};
                name_arguments(*record_, e, all);
            } else {
                raise_again(e);
            }
            return nullptr;
        }
    }
    template <class Arg>
    static bool load(bind::room_for<Arg>& room, PyObject* obj, std::size_t index) {
        const bind::loading answer = room.load(obj, true);
        if (answer == bind::loading::done) [[likely]]
            return true;
        if (answer == bind::loading::refused) raise_refused(*record_, index, obj);
        return false;
    }

    TENON_PRIVATE static inline const function_record* record_ = nullptr;
};

/// The type of a function, or of a lambda without captures, as a pointer; that it never throws is no part of
/// it.
template <class Return, class... Args>
Return (*without_noexcept(Return (*)(Args...)))(Args...);
template <auto F, class Tag>
using method_of = method<F, Tag, decltype(without_noexcept(+F))>;

}  // namespace detail

/// The definition of a module's method that calls `F` with its arguments converted, for a table of methods or
/// `PyModule_AddFunctions`: a name for each parameter, with a default value if it has one. Arrays are
/// borrowed for the length of the call; a C++ exception becomes a Python one. To be called once at each place
/// where it stands, while the table is made.
template <auto F, class Tag = decltype([] {}), std::size_t Count>
[[nodiscard]] PyMethodDef function(const char* name, const parameter (&parameters)[Count],
                                   const char* doc = nullptr) {
    using made = detail::method_of<F, Tag>;
    static_assert(made::count == Count,
                  "tenon::py::function: give as many names as the function has parameters");
    return made::define(name, parameters, doc);
}
/// The same for a function without parameters.
template <auto F, class Tag = decltype([] {})>
    requires(detail::method_of<F, Tag>::count == 0)
[[nodiscard]] PyMethodDef function(const char* name, const char* doc = nullptr) {
    return detail::method_of<F, Tag>::define(name, {}, doc);
}

}  // namespace tenon::py

#include <tenon/detail/python_engine.hpp>  // last: with TENON_HEADER_ONLY, what stands behind it
