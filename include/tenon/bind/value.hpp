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

#include <tenon/bind/argument.hpp>
#include <tenon/bind/array.hpp>
#include <tenon/bind/slot.hpp>
#include <tenon/detail/config.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon::bind {

/// Room for a value that is no array by itself: `annotation()` as a signature has it, `load(obj,
/// may_convert)`, `value()`; and `ran_code()`, if loading it may be known to have run no Python. Specialise
/// it to add a type of your own.
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
class stored_items : public stored_value<T> {
public:
    kept_objects& kept() noexcept { return kept_; }

protected:
    kept_objects kept_;
};

// --- numbers and text -------------------------------------------------------------------------------------

template <>
class value_slot<bool> : public stored_value<bool> {
public:
    static std::string annotation() { return "bool"; }
    loading load(PyObject* obj, bool) noexcept {
        value_ = obj == Py_True;
        return PyBool_Check(obj) ? loading::done : loading::refused;
    }
    static constexpr bool ran_code() noexcept { return false; }
};

// The number that an object is, and whether that took more than a look.
[[nodiscard]] TENON_API loading load_number(PyObject* obj, long long& out, bool& ran_code) noexcept;
[[nodiscard]] TENON_API loading load_number(PyObject* obj, unsigned long long& out, bool& ran_code) noexcept;
[[nodiscard]] TENON_API loading load_number(PyObject* obj, double& out, bool& ran_code) noexcept;

template <class T>
    requires std::is_arithmetic_v<T>
class value_slot<T> : public stored_value<T> {
    using wide = std::conditional_t<std::floating_point<T>, double,
                                    std::conditional_t<std::is_signed_v<T>, long long, unsigned long long>>;

public:
    static std::string annotation() { return std::floating_point<T> ? "float" : "int"; }
    loading load(PyObject* obj, bool) noexcept {
        wide number{};
        const loading answer = load_number(obj, number, ran_code_);
        this->value_ = static_cast<T>(number);
        if constexpr (std::integral<T>)
            if (answer == loading::done && !std::in_range<T>(number)) return loading::refused;
        return answer;
    }
    [[nodiscard]] bool ran_code() const noexcept { return ran_code_; }

private:
    bool ran_code_ = false;
};

/// The text of an object; null if it is none, or with an exception set.
[[nodiscard]] TENON_API const char* text_of(PyObject* obj, std::size_t& size) noexcept;

/// Text; a view or a pointer is good for the length of the call.
template <class T>
    requires(std::same_as<T, std::string> || std::same_as<T, std::string_view> ||
             std::same_as<T, const char*>)
class value_slot<T> : public stored_value<T> {
public:
    static std::string annotation() { return "str"; }
    loading load(PyObject* obj, bool) {
        std::size_t size = 0;
        const char* const text = text_of(obj, size);
        if (text == nullptr) return PyErr_Occurred() != nullptr ? refuse_or_raise() : loading::refused;
        if constexpr (std::same_as<T, const char*>)
            this->value_ = text;
        else
            this->value_ = T(text, size);
        return loading::done;
    }
    static constexpr bool ran_code() noexcept { return false; }
};

/// Any object, borrowed.
template <>
class value_slot<PyObject*> : public stored_value<PyObject*> {
public:
    static std::string annotation() { return "object"; }
    loading load(PyObject* obj, bool) noexcept {
        value_ = obj;
        return loading::done;
    }
    static constexpr bool ran_code() noexcept { return false; }
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
    if constexpr (is_slotted<T>) {  // it must keep what it shows: its room is gone by then
        found f;
        const loading answer = load_kept(obj, type_of<T>, may_convert, f);
        if (answer != loading::done) return answer;
        if constexpr (std::same_as<T, tensor>)
            put(take_tensor(std::move(f.keeps)));
        else
            put(value_of<T>(std::move(f)));
        return answer;
    } else {
        room_for<T> element;
        const loading answer = element.load(obj, may_convert);
        if (answer != loading::done) return answer;
        put(std::move(element.value()));
        if constexpr (requires { element.kept(); }) {
            for (py::ref& object : element.kept()) kept.push_back(std::move(object));
        }
        return answer;
    }
}

template <class T>
    requires(!is_slotted<std::optional<T>>)
class value_slot<std::optional<T>> : public stored_items<std::optional<T>> {
public:
    static std::string annotation() { return annotation_of<T>() + " | None"; }
    loading load(PyObject* obj, bool may_convert) {
        if (obj == Py_None) return loading::done;
        return load_element<T>(obj, may_convert, this->kept_,
                               [&](T&& v) { this->value_.emplace(std::move(v)); });
    }
};

template <class T>
class value_slot<std::vector<T>> : public stored_items<std::vector<T>> {
public:
    static std::string annotation() { return "collections.abc.Sequence[" + annotation_of<T>() + "]"; }
    loading load(PyObject* obj, bool may_convert) {
        py::ref items = items_of(obj);  // a list may change while we look
        if (!items) return refuse_or_raise();
        const Py_ssize_t count = PyTuple_GET_SIZE(items.get());
        this->value_.reserve(static_cast<std::size_t>(count));
        for (Py_ssize_t i = 0; i < count; ++i) {
            const loading answer = load_element<T>(PyTuple_GET_ITEM(items.get(), i), may_convert, this->kept_,
                                                   [&](T&& v) { this->value_.push_back(std::move(v)); });
            if (answer != loading::done) return answer;
        }
        if constexpr (points_into_object<T>) this->kept_.push_back(std::move(items));
        return loading::done;
    }
};

template <class T>
class value_slot<std::map<std::string, T>> : public stored_items<std::map<std::string, T>> {
public:
    static std::string annotation() { return "dict[str, " + annotation_of<T>() + "]"; }
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
                answer = load_element<T>(item, may_convert, this->kept_,
                                         [&](T&& v) { this->value_.emplace(name.value(), std::move(v)); });
            }
            if (answer != loading::done) return answer;
        }
        if constexpr (points_into_object<T>) this->kept_.push_back(std::move(copy));
        return loading::done;
    }
};

template <class... T>
class value_slot<std::tuple<T...>> : public stored_items<std::optional<std::tuple<T...>>> {
public:
    static std::string annotation() {
        std::string list;
        ((list += (list.empty() ? "" : ", ") + annotation_of<T>()), ...);
        return "tuple[" + list + "]";
    }
    loading load(PyObject* obj, bool may_convert) {
        py::ref items = items_of(obj);
        if (!items) return refuse_or_raise();
        if (PyTuple_GET_SIZE(items.get()) != static_cast<Py_ssize_t>(sizeof...(T))) return loading::refused;
        std::tuple<std::optional<T>...> parts;
        loading answer = loading::done;
        Py_ssize_t next = 0;
        const auto load_part = [&]<class P>(std::optional<P>& part) {
            answer = load_element<P>(PyTuple_GET_ITEM(items.get(), next++), may_convert, this->kept_,
                                     [&](P&& v) { part.emplace(std::move(v)); });
            return answer == loading::done;
        };
        if (std::apply([&](auto&... part) { return (load_part(part) && ...); }, parts))
            std::apply([&](auto&... part) { this->value_.emplace(std::move(*part)...); }, parts);
        if constexpr (points_into_object<std::tuple<T...>>) this->kept_.push_back(std::move(items));
        return answer;
    }
    std::tuple<T...>& value() noexcept { return *this->value_; }
};

// --- annotations ------------------------------------------------------------------------------------------

/// The annotation of a type that is lent, or of a tensor.
[[nodiscard]] TENON_API std::string annotation_of(const parameter_type& type);

template <class T>
[[nodiscard]] std::string annotation_of() {
    if constexpr (is_slotted<std::remove_cvref_t<T>>)
        return annotation_of(type_of<T>);
    else
        return value_slot<std::remove_cvref_t<T>>::annotation();
}

}  // namespace tenon::bind
