// tenon/bind/value.hpp: what functions without a binder take and return beside arrays: numbers, text, lists,
// tuples and dicts, and arrays in them; and how signatures name it.
#pragma once

#include <concepts>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/bind/call.hpp>
#include <tenon/bind/slot.hpp>
#include <tenon/py/ref.hpp>

namespace tenon::bind {

template <class T>
inline constexpr bool is_tuple = is_a<T, std::tuple> || is_a<T, std::pair>;
/// A map from text: the standard's, ordered or not.
template <class T>
concept is_dict = requires { typename T::mapped_type; } && std::same_as<typename T::key_type, std::string>;
template <class T>
inline constexpr bool is_text = is_one_of<T, std::string, std::string_view, const char*>;
/// A value that is read in one look, and keeps nothing alive.
template <class T>
inline constexpr bool is_plain = std::is_arithmetic_v<T> || is_text<T> || std::same_as<T, PyObject*>;

// --- numbers, text, and any object ------------------------------------------------------------------------

/// What a number is read as.
template <class T>
using widest = std::conditional_t<std::floating_point<T>, double,
                                  std::conditional_t<std::is_signed_v<T>, long long, unsigned long long>>;
// The number that an object is, and whether that took more than a look.
[[nodiscard]] TENON_API loading load_number(PyObject* obj, long long& out, bool& ran_code) noexcept;
[[nodiscard]] TENON_API loading load_number(PyObject* obj, unsigned long long& out, bool& ran_code) noexcept;
[[nodiscard]] TENON_API loading load_number(PyObject* obj, double& out, bool& ran_code) noexcept;

/// The text of an object, for as long as that lives.
[[nodiscard]] TENON_API loading load_text(PyObject* obj, std::string_view& out) noexcept;

/// A text that is a view or a pointer, and an object, are good for the length of the call.
template <class T>
    requires is_plain<T>
[[nodiscard]] loading load_value(PyObject* obj, T& out, bool& ran_code) {
    if constexpr (std::same_as<T, PyObject*>) {
        out = obj;
    } else if constexpr (std::same_as<T, bool>) {
        if (!PyBool_Check(obj)) return loading::refused;
        out = obj == Py_True;
    } else if constexpr (is_text<T>) {
        std::string_view text;
        if (const loading answer = load_text(obj, text); answer != loading::done) return answer;
        if constexpr (std::same_as<T, const char*>)
            out = text.data();
        else
            out = text;
    } else {
        widest<T> number{};
        if (const loading answer = load_number(obj, number, ran_code); answer != loading::done) return answer;
        if constexpr (std::integral<T>)
            if (!std::in_range<T>(number)) return loading::refused;
        out = static_cast<T>(number);
    }
    return loading::done;
}

// --- values in values -------------------------------------------------------------------------------------

/// What the elements of a container point into: the room of the container keeps it for the call.
using kept_objects = std::vector<py::ref>;

/// Room for a value that is no array by itself. It is specialised to add a type of the author's own, with
/// `load(obj, may_convert)`, `value()`, and a static `annotation()` as a signature has it.
template <class T>
class value_slot;
template <class T>
concept own_type = requires { value_slot<T>::annotation(); };

/// A value that may point into the object it was loaded from, or a container of such.
template <class T>
inline constexpr bool points_into_object =
    is_one_of<T, std::string_view, const char*, PyObject*> || own_type<T>;
template <template <class...> class Container, class... T>
    requires(!std::same_as<Container<T...>, std::string_view> && !own_type<Container<T...>>)
inline constexpr bool points_into_object<Container<T...>> = (points_into_object<T> || ...);

/// What stands in a list, a tuple or another sequence now, as a tuple; text is none. Null with an exception
/// set when it is no sequence.
[[nodiscard]] TENON_API py::ref items_of(PyObject* obj) noexcept;

/// Loads an element, or a value that has elements, and puts aside what it points into.
template <class T>
[[nodiscard]] loading load_value(PyObject* obj, bool may_convert, std::optional<T>& out, kept_objects& kept);

template <class T>
[[nodiscard]] loading load_items(PyObject* items, bool may_convert, std::optional<std::vector<T>>& out,
                                 kept_objects& kept) {
    const Py_ssize_t count = PyTuple_GET_SIZE(items);
    out.emplace().reserve(static_cast<std::size_t>(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
        std::optional<T> item;
        const loading answer = load_value(PyTuple_GET_ITEM(items, i), may_convert, item, kept);
        if (answer != loading::done) return answer;
        out->push_back(std::move(*item));
    }
    return loading::done;
}
template <class... T>
[[nodiscard]] loading load_items(PyObject* items, bool may_convert, std::optional<std::tuple<T...>>& out,
                                 kept_objects& kept) {
    if (PyTuple_GET_SIZE(items) != static_cast<Py_ssize_t>(sizeof...(T))) return loading::refused;
    loading answer = loading::done;
    Py_ssize_t next = 0;
    const auto load = [&](auto& part) {
        answer = load_value(PyTuple_GET_ITEM(items, next++), may_convert, part, kept);
        return answer == loading::done;
    };
    const auto load_all = [&](auto&... parts) {
        if ((load(parts) && ...)) out.emplace(std::move(*parts)...);
    };
    std::tuple<std::optional<T>...> parts;
    std::apply(load_all, parts);
    return answer;
}
template <is_dict T>
[[nodiscard]] loading load_items(PyObject* dict, bool may_convert, std::optional<T>& out,
                                 kept_objects& kept) {
    out.emplace();
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value) != 0;) {
        // Whoever asks the collector finds the copy, too, and may empty it.
        const py::ref held_key = py::ref::borrow(key), held_value = py::ref::borrow(value);
        std::string_view name;
        std::optional<typename T::mapped_type> item;
        loading answer = load_text(key, name);
        if (answer == loading::done) answer = load_value(value, may_convert, item, kept);
        if (answer != loading::done) return answer;
        out->emplace(name, std::move(*item));
    }
    return loading::done;
}

template <class T>
loading load_value(PyObject* obj, bool may_convert, std::optional<T>& out, kept_objects& kept) {
    if constexpr (is_plain<T>) {
        bool ran_code = false;
        return load_value(obj, out.emplace(), ran_code);
    } else if constexpr (is_slotted<T> || own_type<T>) {
        std::conditional_t<is_slotted<T>, kept_item<T>, value_slot<T>> item;
        const loading answer = item.load(obj, may_convert);
        if (answer == loading::done) out.emplace(std::move(item.value()));
        return answer;
    } else if constexpr (is_a<T, std::optional>) {
        out.emplace();
        return obj == Py_None ? loading::done : load_value(obj, may_convert, *out, kept);
    } else if constexpr (keeps_nothing<T> || is_span<T> || is_library_array<T>) {
        return (refuse_borrowed<T>{}, refuse_parameter<T>{}, loading::refused);
    } else {
        static_assert(
            is_dict<T> || is_a<T, std::vector> || is_a<T, std::tuple>,
            "tenon::py::function: not a parameter; there are numbers, text, PyObject*, arrays, tensors, "
            "and std::optional, std::vector, std::tuple and std::map<std::string, ...> of these");
        if (is_dict<T> && !PyDict_Check(obj)) return loading::refused;
        // A list or a dict may change while we look.
        py::ref items = is_dict<T> ? py::ref::take(PyDict_Copy(obj)) : items_of(obj);
        if (!items) return refuse_or_raise();
        const loading answer = load_items(items.get(), may_convert, out, kept);
        if constexpr (points_into_object<T>) kept.push_back(std::move(items));
        return answer;
    }
}

template <class T>
class value_slot {
public:
    [[nodiscard]] loading load(PyObject* obj, bool may_convert) {
        return load_value(obj, may_convert, value_, kept_);
    }
    [[nodiscard]] T& value() noexcept { return *value_; }

private:
    std::optional<T> value_;
    kept_objects kept_;
};
template <class T>
    requires is_plain<T>
class value_slot<T> {
public:
    [[nodiscard]] loading load(PyObject* obj, bool) { return load_value(obj, value_, ran_code_); }
    [[nodiscard]] T& value() noexcept { return value_; }
    [[nodiscard]] bool ran_code() const noexcept { return ran_code_; }

private:
    T value_{};
    bool ran_code_ = false;
};
/// The room for a parameter of type `T`.
template <class T, class Value = std::remove_cvref_t<T>>
using room_for = std::conditional_t<is_slotted<Value>, slot<Value>, value_slot<Value>>;

// --- results ----------------------------------------------------------------------------------------------

/// A result as a Python object: a new reference, or null with an exception set.
template <class T>
[[nodiscard]] PyObject* to_object(T&& result);
/// A part of one, moved out of it unless that stays where it is.
template <class Whole, class Part>
[[nodiscard]] PyObject* part_to_object(Part&& part) {
    if constexpr (std::is_lvalue_reference_v<Whole>)
        return to_object(part);
    else
        return to_object(std::move(part));  // NOLINT(bugprone-move-forwarding-reference): the whole is
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
    } else if constexpr (is_array<value> || is_one_of<value, tensor, shared_tensor, tenon::result<tensor>>) {
        return to_python<value>(std::forward<T>(result));
    } else if constexpr (is_library_array<value>) {
        return named_to_python(std::forward<T>(result));
    } else if constexpr (is_a<value, std::optional>) {
        return result ? to_object(*std::forward<T>(result)) : py::ref::borrow(Py_None).release();
    } else if constexpr (is_a<value, std::vector>) {
        py::ref made = py::ref::take(PyList_New(static_cast<Py_ssize_t>(result.size())));
        for (std::size_t i = 0; made && i < result.size(); ++i) {
            PyObject* const item = part_to_object<T>(result[i]);
            if (item == nullptr) return nullptr;
            PyList_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), item);
        }
        return made.release();
    } else if constexpr (is_dict<value>) {
        py::ref made = py::ref::take(PyDict_New());
        for (auto& [key, item] : result) {
            const py::ref object = py::ref::take(made ? part_to_object<T>(item) : nullptr);
            if (!object || set_item(made.get(), key.c_str(), object.get()) != 0) return nullptr;
        }
        return made.release();
    } else if constexpr (is_tuple<value>) {
        py::ref made = py::ref::take(PyTuple_New(std::tuple_size_v<value>));
        Py_ssize_t at = 0;
        const auto put = [&](PyObject* item) {
            if (item != nullptr) PyTuple_SET_ITEM(made.get(), at++, item);
            return item != nullptr;
        };
        const bool complete =
            made && std::apply([&](auto&... part) { return (put(part_to_object<T>(part)) && ...); }, result);
        return complete ? made.release() : nullptr;
    } else if constexpr (keeps_nothing<value> || is_span<value>) {
        return (refuse_borrowed<value>{}, nullptr);
    } else {
        static_assert(
            sizeof(T) == 0,
            "tenon::py::function: no Python object is known for this result; return a number, text, "
            "an array, a tensor, a tuple, a vector or a PyObject*");
        return nullptr;
    }
}

// --- annotations ------------------------------------------------------------------------------------------

/// The annotation of a parameter type that is lent, or of a tensor.
[[nodiscard]] TENON_API std::string annotation_of(const parameter_type& type);

/// A parameter as a signature has it, or a result.
template <class T, bool IsResult = false>
[[nodiscard]] std::string annotation_of() {
    using value = std::remove_cvref_t<T>;
    if constexpr (std::is_void_v<T>) {
        return "None";
    } else if constexpr (is_slotted<value> && !IsResult) {
        return annotation_of(type_of<value>);
    } else if constexpr (is_array<value>) {
        return std::string(annotation_out<value>);
    } else if constexpr (is_one_of<value, tensor, shared_tensor, result<tensor>>) {
        return std::string(annotation_out<tensor>);
    } else if constexpr (is_library_array<value>) {
        return std::string(value::annotation);
    } else if constexpr (is_a<value, std::optional>) {
        return annotation_of<typename value::value_type, IsResult>() + " | None";
    } else if constexpr (is_a<value, std::vector>) {
        return (IsResult ? "list[" : "collections.abc.Sequence[") +
               annotation_of<typename value::value_type, IsResult>() + "]";
    } else if constexpr (is_dict<value>) {
        return "dict[str, " + annotation_of<typename value::mapped_type, IsResult>() + "]";
    } else if constexpr (is_tuple<value>) {
        return []<class... Part, template <class...> class Of>(std::type_identity<Of<Part...>>) {
            std::string list;
            ((list += (list.empty() ? "" : ", ") + annotation_of<Part, IsResult>()), ...);
            return "tuple[" + list + "]";
        }(std::type_identity<value>{});
    } else if constexpr (is_one_of<value, PyObject*, py::ref>) {
        return "object";
    } else if constexpr (std::convertible_to<const value&, std::string_view>) {
        return "str";
    } else if constexpr (own_type<value>) {
        return value_slot<value>::annotation();
    } else {
        return std::same_as<value, bool> ? "bool" : std::floating_point<value> ? "float" : "int";
    }
}

}  // namespace tenon::bind
