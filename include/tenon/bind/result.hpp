// tenon/bind/result.hpp: the result of a function without a binder as a Python object, and as its signature
// has it.
#pragma once

#include <concepts>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/bind/array.hpp>
#include <tenon/bind/call.hpp>
#include <tenon/bind/value.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon::bind {

/// A result as a Python object: a new reference, or null with an exception set.
template <class T>
[[nodiscard]] PyObject* to_object(T&& result);

/// A result as a signature has it.
template <class T>
[[nodiscard]] std::string result_annotation_of();

namespace detail {
template <class>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class>
inline constexpr bool is_vector = false;
template <class T, class A>
inline constexpr bool is_vector<std::vector<T, A>> = true;
template <class>
inline constexpr bool is_map = false;
template <class T, class C, class A>
inline constexpr bool is_map<std::map<std::string, T, C, A>> = true;
template <class>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;
template <class A, class B>
inline constexpr bool is_tuple<std::pair<A, B>> = true;
template <class>
inline constexpr bool is_supported = false;  // depends on a type, for a static_assert

template <class Tuple>
[[nodiscard]] PyObject* tuple_to_object(Tuple&& parts) {
    constexpr std::size_t count = std::tuple_size_v<std::remove_cvref_t<Tuple>>;
    py::ref made = py::ref::take(PyTuple_New(static_cast<Py_ssize_t>(count)));
    if (!made) return nullptr;
    const bool complete = [&]<std::size_t... I>(std::index_sequence<I...>) {
        const auto put = [&](Py_ssize_t at, PyObject* item) {
            if (item != nullptr) PyTuple_SET_ITEM(made.get(), at, item);
            return item != nullptr;
        };
        return (put(static_cast<Py_ssize_t>(I), to_object(std::get<I>(std::forward<Tuple>(parts)))) && ...);
    }(std::make_index_sequence<count>{});
    return complete ? made.release() : nullptr;
}
}  // namespace detail

template <class T>
std::string result_annotation_of() {
    using value = std::remove_cvref_t<T>;
    if constexpr (std::is_void_v<T>) {
        return "None";
    } else if constexpr (is_array<value>) {
        return "typing.Annotated[typing.Any, '" + std::string(value::spelled_result.view()) + "']";
    } else if constexpr (std::same_as<value, tensor> || std::same_as<value, tenon::result<tensor>>) {
        return "tenon.Tensor";
    } else if constexpr (detail::is_optional<value>) {
        return result_annotation_of<typename value::value_type>() + " | None";
    } else if constexpr (detail::is_vector<value>) {
        return "list[" + result_annotation_of<typename value::value_type>() + "]";
    } else if constexpr (detail::is_map<value>) {
        return "dict[str, " + result_annotation_of<typename value::mapped_type>() + "]";
    } else if constexpr (detail::is_tuple<value>) {
        std::string list;
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            ((list += (I == 0 ? "" : ", ") + result_annotation_of<std::tuple_element_t<I, value>>()), ...);
        }(std::make_index_sequence<std::tuple_size_v<value>>{});
        return "tuple[" + list + "]";
    } else if constexpr (std::same_as<value, py::ref>) {
        return "object";
    } else if constexpr (std::convertible_to<const value&, std::string_view>) {
        return "str";
    } else {
        return annotation_of<value>();
    }
}

template <class T>
PyObject* to_object(T&& result) {
    using value = std::remove_cvref_t<T>;
    if constexpr (std::same_as<value, bool>) {
        return PyBool_FromLong(result ? 1 : 0);
    } else if constexpr (std::signed_integral<value>) {
        return PyLong_FromLongLong(result);
    } else if constexpr (std::unsigned_integral<value>) {
        return PyLong_FromUnsignedLongLong(result);
    } else if constexpr (std::floating_point<value>) {
        return PyFloat_FromDouble(static_cast<double>(result));
    } else if constexpr (std::convertible_to<const value&, std::string_view>) {
        const std::string_view text = result;
        return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
    } else if constexpr (std::same_as<value, PyObject*>) {
        return result;
    } else if constexpr (std::same_as<value, py::ref>) {
        return py::ref(std::forward<T>(result)).release();
    } else if constexpr (is_array<value>) {
        return access::to_python(value(std::forward<T>(result)));
    } else if constexpr (std::same_as<value, tensor> || std::same_as<value, tenon::result<tensor>>) {
        static_assert(!std::is_lvalue_reference_v<T>,
                      "a tensor that stays in C++ is returned by t.share(), another one by value");
        return tensor_to_python(std::forward<T>(result));
    } else if constexpr (detail::is_optional<value>) {
        return result ? to_object(*std::forward<T>(result)) : py::ref::borrow(Py_None).release();
    } else if constexpr (detail::is_vector<value>) {
        py::ref made = py::ref::take(PyList_New(static_cast<Py_ssize_t>(result.size())));
        for (std::size_t i = 0; made && i < result.size(); ++i) {
            PyObject* const item = to_object(std::move(result[i]));
            if (item == nullptr) return nullptr;
            PyList_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), item);
        }
        return made.release();
    } else if constexpr (detail::is_map<value>) {
        py::ref made = py::ref::take(PyDict_New());
        for (auto& [key, item] : result) {
            const py::ref object = py::ref::take(made ? to_object(std::move(item)) : nullptr);
            if (!object || set_item(made.get(), key.c_str(), object.get()) != 0) return nullptr;
        }
        return made.release();
    } else if constexpr (detail::is_tuple<value>) {
        return detail::tuple_to_object(std::forward<T>(result));
    } else {
        static_assert(
            detail::is_supported<value>,
            "tenon::py::function: no Python object is known for this result; return a number, text, "
            "an array, a tensor, a tuple, a vector or a PyObject*");
        return nullptr;
    }
}

}  // namespace tenon::bind
