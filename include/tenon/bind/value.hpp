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

/// Room for a value that is no array by itself: `load(obj, may_convert)`, `value()`; and `ran_code()`, if
/// loading it may be known to have run no Python. Specialise it to add a type of your own, with a static
/// `annotation()` as a signature has it.
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
/// The room for a parameter of type `T`.
template <class T>
using room_for = typename room<std::remove_cvref_t<T>>::type;

/// What the elements of a container point into: the room of the container keeps it for the call.
using kept_objects = std::vector<py::ref>;

/// What rooms for values have in common.
template <class T>
class stored_value {
public:
    T& value() noexcept { return value_; }

protected:
    T value_{};
};
template <class T>
struct stored_items : stored_value<T> {
    kept_objects kept;
};

template <class T>
inline constexpr bool is_tuple = is_a<T, std::tuple> || is_a<T, std::pair>;
template <class T>
inline constexpr bool is_dict = false;
template <class T, class... Rest>
inline constexpr bool is_dict<std::map<std::string, T, Rest...>> = true;
template <class T>
inline constexpr bool is_text =
    std::same_as<T, std::string> || std::same_as<T, std::string_view> || std::same_as<T, const char*>;

// --- numbers, text, and any object ------------------------------------------------------------------------

// The number that an object is, and whether that took more than a look.
[[nodiscard]] TENON_API loading load_number(PyObject* obj, long long& out, bool& ran_code) noexcept;
[[nodiscard]] TENON_API loading load_number(PyObject* obj, unsigned long long& out, bool& ran_code) noexcept;
[[nodiscard]] TENON_API loading load_number(PyObject* obj, double& out, bool& ran_code) noexcept;

/// The text of an object; null if it is none, or with an exception set.
[[nodiscard]] TENON_API const char* text_of(PyObject* obj, std::size_t& size) noexcept;

/// A text that is a view or a pointer, and an object, are good for the length of the call.
template <class T>
    requires(std::is_arithmetic_v<T> || is_text<T> || std::same_as<T, PyObject*>)
class value_slot<T> : public stored_value<T> {
    using wide = std::conditional_t<std::floating_point<T>, double,
                                    std::conditional_t<std::is_signed_v<T>, long long, unsigned long long>>;

public:
    loading load(PyObject* obj, bool) {
        if constexpr (std::same_as<T, PyObject*>) {
            this->value_ = obj;
        } else if constexpr (std::same_as<T, bool>) {
            this->value_ = obj == Py_True;
            if (!PyBool_Check(obj)) return loading::refused;
        } else if constexpr (std::is_arithmetic_v<T>) {
            wide number{};
            const loading answer = load_number(obj, number, ran_code_);
            if (answer != loading::done) return answer;
            if constexpr (std::integral<T>)
                if (!std::in_range<T>(number)) return loading::refused;
            this->value_ = static_cast<T>(number);
        } else {
            std::size_t size = 0;
            const char* const text = text_of(obj, size);
            if (text == nullptr) return PyErr_Occurred() != nullptr ? refuse_or_raise() : loading::refused;
            if constexpr (std::same_as<T, const char*>)
                this->value_ = text;
            else
                this->value_ = T(text, size);
        }
        return loading::done;
    }
    [[nodiscard]] bool ran_code() const noexcept { return ran_code_; }

private:
    bool ran_code_ = false;
};

// --- values in values -------------------------------------------------------------------------------------

/// A value that may point into the object it was loaded from: text that is not copied, the object itself, a
/// type of one's own; or a container of such.
template <class T>
inline constexpr bool points_into_object =
    !std::is_arithmetic_v<T> && !std::same_as<T, std::string> && !is_slotted<T>;
template <class T>
    requires(!is_slotted<std::optional<T>>)
inline constexpr bool points_into_object<std::optional<T>> = points_into_object<T>;
template <class T>
inline constexpr bool points_into_object<std::vector<T>> = points_into_object<T>;
template <class T>
inline constexpr bool points_into_object<std::map<std::string, T>> = points_into_object<T>;
template <class... T>
inline constexpr bool points_into_object<std::tuple<T...>> = (points_into_object<T> || ...);

/// What stands in a list, a tuple or another sequence now, as a tuple; text is none. Null with an exception
/// set when it is no sequence.
[[nodiscard]] TENON_API py::ref items_of(PyObject* obj) noexcept;

/// Loads an element and puts it where it is to stay, and what its own elements point into beside it.
template <class T, class Put>
[[nodiscard]] loading load_element(PyObject* obj, bool may_convert, kept_objects& kept, Put&& put) {
    std::conditional_t<is_slotted<T>, kept_item<T>, value_slot<T>> element;
    const loading answer = element.load(obj, may_convert);
    if (answer != loading::done) return answer;
    put(std::move(element.value()));
    if constexpr (requires { element.kept; }) {
        for (py::ref& object : element.kept) kept.push_back(std::move(object));
    }
    return answer;
}

template <class T>
    requires(!is_slotted<std::optional<T>>)
class value_slot<std::optional<T>> : public stored_items<std::optional<T>> {
public:
    loading load(PyObject* obj, bool may_convert) {
        if (obj == Py_None) return loading::done;
        return load_element<T>(obj, may_convert, this->kept,
                               [&](T&& v) { this->value_.emplace(std::move(v)); });
    }
};

template <class T>
class value_slot<std::vector<T>> : public stored_items<std::vector<T>> {
public:
    loading load(PyObject* obj, bool may_convert) {
        py::ref items = items_of(obj);  // a list may change while we look
        if (!items) return refuse_or_raise();
        const Py_ssize_t count = PyTuple_GET_SIZE(items.get());
        this->value_.reserve(static_cast<std::size_t>(count));
        for (Py_ssize_t i = 0; i < count; ++i) {
            const loading answer = load_element<T>(PyTuple_GET_ITEM(items.get(), i), may_convert, this->kept,
                                                   [&](T&& v) { this->value_.push_back(std::move(v)); });
            if (answer != loading::done) return answer;
        }
        if constexpr (points_into_object<T>) this->kept.push_back(std::move(items));
        return loading::done;
    }
};

template <class T>
class value_slot<std::map<std::string, T>> : public stored_items<std::map<std::string, T>> {
public:
    loading load(PyObject* obj, bool may_convert) {
        if (!PyDict_Check(obj)) return loading::refused;
        py::ref copy = py::ref::take(PyDict_Copy(obj));
        if (!copy) return refuse_or_raise();
        PyObject *key = nullptr, *item = nullptr;
        for (Py_ssize_t at = 0; PyDict_Next(copy.get(), &at, &key, &item) != 0;) {
            // Whoever asks the collector finds the copy, too, and may empty it.
            const py::ref held_key = py::ref::borrow(key), held_item = py::ref::borrow(item);
            value_slot<std::string> name;
            loading answer = name.load(key, false);
            if (answer == loading::done) {
                answer = load_element<T>(item, may_convert, this->kept,
                                         [&](T&& v) { this->value_.emplace(name.value(), std::move(v)); });
            }
            if (answer != loading::done) return answer;
        }
        if constexpr (points_into_object<T>) this->kept.push_back(std::move(copy));
        return loading::done;
    }
};

template <class... T>
class value_slot<std::tuple<T...>> : public stored_items<std::optional<std::tuple<T...>>> {
public:
    loading load(PyObject* obj, bool may_convert) {
        py::ref items = items_of(obj);
        if (!items) return refuse_or_raise();
        if (PyTuple_GET_SIZE(items.get()) != static_cast<Py_ssize_t>(sizeof...(T))) return loading::refused;
        std::tuple<std::optional<T>...> parts;
        loading answer = loading::done;
        Py_ssize_t next = 0;
        const auto load_part = [&]<class P>(std::optional<P>& part) {
            answer = load_element<P>(PyTuple_GET_ITEM(items.get(), next++), may_convert, this->kept,
                                     [&](P&& v) { part.emplace(std::move(v)); });
            return answer == loading::done;
        };
        if (std::apply([&](auto&... part) { return (load_part(part) && ...); }, parts))
            std::apply([&](auto&... part) { this->value_.emplace(std::move(*part)...); }, parts);
        if constexpr (points_into_object<std::tuple<T...>>) this->kept.push_back(std::move(items));
        return answer;
    }
    std::tuple<T...>& value() noexcept { return *this->value_; }
};

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
        return to_object(std::move(part));
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
        return to_python<value>(std::forward<T>(result));
    } else if constexpr (std::same_as<value, tensor> || std::same_as<value, tenon::result<tensor>>) {
        return to_python<tensor>(std::forward<T>(result));
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
    } else {
        static_assert(
            sizeof(T) == 0,
            "tenon::py::function: no Python object is known for this result; return a number, text, "
            "an array, a tensor, a tuple, a vector or a PyObject*");
        return nullptr;
    }
}

// --- annotations ------------------------------------------------------------------------------------------

/// The annotation of a type that is lent, or of a tensor.
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
        return "typing.Annotated[typing.Any, '" + std::string(value::spelled_result.view()) + "']";
    } else if constexpr (std::same_as<value, tensor> || std::same_as<value, result<tensor>>) {
        return "tenon.Tensor";
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
    } else if constexpr (std::same_as<value, PyObject*> || std::same_as<value, py::ref>) {
        return "object";
    } else if constexpr (is_text<value> ||
                         (IsResult && std::convertible_to<const value&, std::string_view>)) {
        return "str";
    } else if constexpr (std::is_arithmetic_v<value>) {
        return std::same_as<value, bool> ? "bool" : std::floating_point<value> ? "float" : "int";
    } else {
        return value_slot<value>::annotation();
    }
}

}  // namespace tenon::bind
