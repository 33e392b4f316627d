// tenon/bind/value.hpp: plain values for functions without a binder: numbers, text, lists, tuples and dicts,
// and arrays in them.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <tenon/bind/array.hpp>
#include <tenon/bind/explain.hpp>
#include <tenon/bind/slot.hpp>
#include <tenon/core/tensor.hpp>
#include <tenon/py/call.hpp>
#include <tenon/py/like.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/py/ref.hpp>

namespace tenon::bind {

/// Room for a value that is no array by itself: `annotation()` as a signature has it, `load(obj,
/// may_convert)`, `value()`. Specialise it to add a type of your own.
template <class T>
class value_slot;

template <class T>
struct room {
    using type = value_slot<T>;
};
template <class T>
    requires is_slotted<T>
struct room<T> {
    using type = slot<T>;
};
/// The room for a parameter or an element of type `T`.
template <class T>
using room_for = typename room<std::remove_cvref_t<T>>::type;

template <class T>
[[nodiscard]] std::string annotation_of();

// --- numbers and text -------------------------------------------------------------------------------------

template <>
class value_slot<bool> {
public:
    static std::string annotation() { return "bool"; }
    loading load(PyObject* obj, bool) noexcept {
        value_ = obj == Py_True;
        return PyBool_Check(obj) ? loading::done : loading::refused;
    }
    bool& value() noexcept { return value_; }

private:
    bool value_ = false;
};

template <std::integral T>
class value_slot<T> {
public:
    static std::string annotation() { return "int"; }
    loading load(PyObject* obj, bool) noexcept {
        if (PyIndex_Check(obj) == 0 || PyBool_Check(obj)) return loading::refused;
        const py::ref number = py::ref::take(py::call::index(obj));
        if (!number) return refuse_or_raise();
        if constexpr (std::is_signed_v<T>) {
            const long long n = PyLong_AsLongLong(number.get());
            if (n == -1 && PyErr_Occurred() != nullptr) return refuse_or_raise();
            value_ = static_cast<T>(n);
            return std::in_range<T>(n) ? loading::done : loading::refused;
        } else {
            const unsigned long long n = PyLong_AsUnsignedLongLong(number.get());
            if (PyErr_Occurred() != nullptr) return refuse_or_raise();
            value_ = static_cast<T>(n);
            return std::in_range<T>(n) ? loading::done : loading::refused;
        }
    }
    T& value() noexcept { return value_; }

private:
    T value_{};
};

template <std::floating_point T>
class value_slot<T> {
public:
    static std::string annotation() { return "float"; }
    loading load(PyObject* obj, bool) noexcept {
        if (PyFloat_CheckExact(obj)) {
            value_ = static_cast<T>(PyFloat_AS_DOUBLE(obj));
            return loading::done;
        }
        if (PyNumber_Check(obj) == 0) return loading::refused;
        const double number = foreign_code([&] { return PyFloat_AsDouble(obj); });
        if (number == -1.0 && PyErr_Occurred() != nullptr) return refuse_or_raise();
        value_ = static_cast<T>(number);
        return loading::done;
    }
    T& value() noexcept { return value_; }

private:
    T value_{};
};

/// Text; a view or a pointer is good for the length of the call.
template <class T>
    requires(std::same_as<T, std::string> || std::same_as<T, std::string_view> ||
             std::same_as<T, const char*>)
class value_slot<T> {
public:
    static std::string annotation() { return "str"; }
    loading load(PyObject* obj, bool) noexcept try {
        if (!PyUnicode_Check(obj)) return loading::refused;
        Py_ssize_t size = 0;
        const char* const text = PyUnicode_AsUTF8AndSize(obj, &size);
        if (text == nullptr) return refuse_or_raise();
        if constexpr (std::same_as<T, const char*>)
            value_ = text;
        else
            value_ = T(text, static_cast<std::size_t>(size));
        return loading::done;
    } catch (...) {
        py::raise_caught();
        return loading::raised;
    }
    T& value() noexcept { return value_; }

private:
    T value_{};
};

/// Any object, borrowed.
template <>
class value_slot<PyObject*> {
public:
    static std::string annotation() { return "object"; }
    loading load(PyObject* obj, bool) noexcept {
        value_ = obj;
        return loading::done;
    }
    PyObject*& value() noexcept { return value_; }

private:
    PyObject* value_ = nullptr;
};

// --- values in values -------------------------------------------------------------------------------------

/// An element of a list or a dict, which must keep what it shows: the room it is loaded in is gone by then.
template <class T>
    requires(!is_array<T>)
[[nodiscard]] loading load_kept(PyObject* obj, bool may_convert, std::optional<T>& out) {
    room_for<T> element;
    const loading answer = load_settled(element, obj, may_convert);
    if (answer == loading::done) out.emplace(std::move(element.value()));
    return answer;
}
template <class Array>
    requires is_array<Array>
[[nodiscard]] loading load_kept(PyObject* obj, bool may_convert, std::optional<std::optional<Array>>& out) {
    return obj == Py_None ? (out.emplace(), loading::done)
                          : load_kept<Array>(obj, may_convert, out.emplace());
}
template <class... Array>
    requires(is_array<Array> && ...)
[[nodiscard]] loading load_kept(PyObject* obj, bool may_convert, std::optional<std::variant<Array...>>& out) {
    loading answer = loading::refused;
    const auto attempt = [&]<class A>(std::type_identity<A>, bool converting) {
        std::optional<A> kept;
        answer = load_kept<A>(obj, converting, kept);
        if (answer == loading::done) out.emplace(std::in_place_type<A>, std::move(*kept));
        return answer != loading::refused;
    };
    (void)((attempt(std::type_identity<Array>{}, false) || ...) ||
           (may_convert && (attempt(std::type_identity<Array>{}, true) || ...)));
    return answer;
}

/// Loads an element and puts it where it is to stay.
template <class T, class Put>
[[nodiscard]] loading load_element(PyObject* obj, bool may_convert, Put&& put) {
    std::optional<T> kept;
    const loading answer = load_kept(obj, may_convert, kept);
    if (answer == loading::done) put(std::move(*kept));
    return answer;
}

template <class T>
    requires(!is_slotted<std::optional<T>>)
class value_slot<std::optional<T>> {
public:
    static std::string annotation() { return annotation_of<T>() + " | None"; }
    loading load(PyObject* obj, bool may_convert) noexcept try {
        if (obj == Py_None) return loading::done;
        return load_element<T>(obj, may_convert, [&](T&& v) { value_.emplace(std::move(v)); });
    } catch (...) {
        py::raise_caught();
        return loading::raised;
    }
    std::optional<T>& value() noexcept { return value_; }

private:
    std::optional<T> value_;
};

template <class T>
class value_slot<std::vector<T>> {
public:
    static std::string annotation() { return "collections.abc.Sequence[" + annotation_of<T>() + "]"; }
    loading load(PyObject* obj, bool may_convert) noexcept try {
        const py::ref items = detail::items_of(obj);  // a list may change while we look
        if (!items) return refuse_or_raise();
        const Py_ssize_t count = PyTuple_GET_SIZE(items.get());
        value_.reserve(static_cast<std::size_t>(count));
        for (Py_ssize_t i = 0; i < count; ++i) {
            const loading answer = load_element<T>(PyTuple_GET_ITEM(items.get(), i), may_convert,
                                                   [&](T&& v) { value_.push_back(std::move(v)); });
            if (answer != loading::done) return answer;
        }
        return loading::done;
    } catch (...) {
        py::raise_caught();
        return loading::raised;
    }
    std::vector<T>& value() noexcept { return value_; }

private:
    std::vector<T> value_;
};

template <class T>
class value_slot<std::map<std::string, T>> {
public:
    static std::string annotation() { return "dict[str, " + annotation_of<T>() + "]"; }
    loading load(PyObject* obj, bool may_convert) noexcept try {
        if (!PyDict_Check(obj)) return loading::refused;
        const py::ref copy = py::ref::take(PyDict_Copy(obj));
        if (!copy) return refuse_or_raise();
        PyObject *key = nullptr, *item = nullptr;
        for (Py_ssize_t at = 0; PyDict_Next(copy.get(), &at, &key, &item) != 0;) {
            value_slot<std::string> name;
            loading answer = name.load(key, false);
            if (answer == loading::done) {
                answer = load_element<T>(item, may_convert,
                                         [&](T&& v) { value_.emplace(name.value(), std::move(v)); });
            }
            if (answer != loading::done) return answer;
        }
        return loading::done;
    } catch (...) {
        py::raise_caught();
        return loading::raised;
    }
    std::map<std::string, T>& value() noexcept { return value_; }

private:
    std::map<std::string, T> value_;
};

template <class... T>
class value_slot<std::tuple<T...>> {
public:
    static std::string annotation() {
        std::string list;
        ((list += (list.empty() ? "" : ", ") + annotation_of<T>()), ...);
        return "tuple[" + list + "]";
    }
    loading load(PyObject* obj, bool may_convert) noexcept try {
        const py::ref items = detail::items_of(obj);
        if (!items) return refuse_or_raise();
        if (PyTuple_GET_SIZE(items.get()) != static_cast<Py_ssize_t>(sizeof...(T))) return loading::refused;
        std::tuple<std::optional<T>...> parts;
        loading answer = loading::done;
        const bool complete = [&]<std::size_t... I>(std::index_sequence<I...>) {
            return (((answer = load_element<T>(
                          PyTuple_GET_ITEM(items.get(), static_cast<Py_ssize_t>(I)), may_convert,
                          [&](T&& v) { std::get<I>(parts).emplace(std::move(v)); })) == loading::done) &&
                    ...);
        }(std::index_sequence_for<T...>{});
        if (complete) std::apply([&](auto&... part) { value_.emplace(std::move(*part)...); }, parts);
        return answer;
    } catch (...) {
        py::raise_caught();
        return loading::raised;
    }
    std::tuple<T...>& value() noexcept { return *value_; }

private:
    std::optional<std::tuple<T...>> value_;
};

// --- annotations ------------------------------------------------------------------------------------------

namespace detail {
template <class T>
struct annotation {
    static std::string text() { return value_slot<T>::annotation(); }
};
template <class T>
    requires is_array<T>
struct annotation<T> {
    static std::string text() {
        return "typing.Annotated[numpy.typing.ArrayLike, '" + std::string(T::spelled.view()) + "']";
    }
};
template <class T>
    requires is_array<T>
struct annotation<std::optional<T>> {
    static std::string text() { return annotation<T>::text() + " | None"; }
};
template <class First, class... Rest>
    requires is_slotted<std::variant<First, Rest...>>
struct annotation<std::variant<First, Rest...>> {
    static std::string text() {
        return (annotation<First>::text() + ... + (" | " + annotation<Rest>::text()));
    }
};
template <>
struct annotation<tensor> {
    static std::string text() { return "numpy.typing.ArrayLike"; }
};
}  // namespace detail

template <class T>
[[nodiscard]] std::string annotation_of() {
    return detail::annotation<std::remove_cvref_t<T>>::text();
}

// --- results ----------------------------------------------------------------------------------------------

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
        if constexpr (std::same_as<value, tensor>)
            return py::to_python(std::forward<T>(result));
        else
            return result ? py::to_python(std::move(*result)) : py::raise(result.error(), "tenon: ");
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
            if (!object || py::call::set_dict_item(made.get(), key.c_str(), object.get()) != 0)
                return nullptr;
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
