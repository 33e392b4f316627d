// tenon/bind/slot.hpp: room for one argument: a Python object goes in, the parameter's value comes out.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include <tenon/bind/array.hpp>
#include <tenon/bind/conversion.hpp>
#include <tenon/bind/phrase.hpp>
#include <tenon/bind/refusal.hpp>
#include <tenon/core/request.hpp>
#include <tenon/core/tensor.hpp>
#include <tenon/py/acquired.hpp>
#include <tenon/py/current_stream.hpp>
#include <tenon/py/import.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>

namespace tenon::bind {

/// What came of an argument.
enum class loading : unsigned char {
    done,
    refused,  ///< not such an array: another overload may take it. No exception is pending
    raised,   ///< an exception is pending that ends the call
};

/// Classes the pending exception.
[[nodiscard]] inline loading refuse_or_raise() noexcept {
    if (is_call_over()) return loading::raised;
    PyErr_Clear();
    return loading::refused;
}

/// The tensor lacks nothing but what the caller's library can convert: element type and order, and with them
/// the address. Asked before, so that nothing is copied, and reported, in vain.
[[nodiscard]] inline bool is_convertible(const tensor_ref& t, request wanted) noexcept {
    wanted.type.reset();
    wanted.order = memory_order::any;
    wanted.alignment = 1;
    return static_cast<bool>(check(t, wanted));
}

/// What an array type asks for in words, ended by a zero.
template <class Array>
[[nodiscard]] const char* text_of() noexcept {
    static constexpr phrase expected = spell(Array::wanted);
    return expected.text;
}

/// A bare capsule can be taken once: it is looked at first, so that one that does not fit is left for another
/// overload, or whoever else wants it. Whatever is no capsule fits, as far as this goes.
[[nodiscard]] inline bool fits_capsule(PyObject* obj, const request& wanted) noexcept {
    if (!PyCapsule_CheckExact(obj)) [[likely]]
        return true;
    py::acquired seen;
    seen.looking = true;
    if (!reach(obj, wanted.writable, seen)) return (PyErr_Clear(), false);
    return static_cast<bool>(check(seen, wanted));
}

/// Room for an argument of type `P`, good for the length of the call. `load` may be called once.
template <class P>
class slot;

/// An array, borrowed: for PyTorch's tensors and NumPy's arrays without an allocation or a Python call.
template <class P>
    requires is_array<P>
class slot<P> {
public:
    slot() noexcept {}  // NOLINT(modernize-use-equals-default): = default would let a tuple zero the storage
    [[nodiscard]] loading load(PyObject* obj, bool may_convert) noexcept {
        if (!fits_capsule(obj, P::wanted)) [[unlikely]]
            return loading::refused;
        if (!reach(obj, P::wanted.writable, got_)) [[unlikely]]
            return refuse_or_raise();
        if (!check(got_, P::wanted)) [[unlikely]] {
            if constexpr (P::converts) {
                if (may_convert && is_convertible(got_, P::wanted)) return load_converted(obj);
            }
            return loading::refused;
        }
        return lend(obj);
    }
    [[nodiscard]] P& value() noexcept { return *value_; }

private:
    [[nodiscard]] loading lend(PyObject* obj) noexcept {
        void* stream = nullptr;
        if constexpr (P::wanted.space == memory_space::any && P::wanted.kind != abi::device_code::cpu) {
            if (!py::current_stream(obj, got_.device(), stream)) return loading::raised;
        }
        value_.emplace(access::lend<P>(got_, stream, obj));
        return loading::done;
    }
    [[nodiscard]] loading load_converted(PyObject* obj) noexcept try {
        converted_ = convert_argument(obj, got_, P::wanted);
        if (!converted_) return refuse_or_raise();
        got_.owner.reset();
        if (!reach(converted_.get(), false, got_)) return refuse_or_raise();
        if (!check(got_, P::wanted)) return loading::refused;
        if (!report_conversion(obj, converted_.get(), text_of<P>())) return loading::raised;
        return lend(converted_.get());
    } catch (...) {
        py::raise_caught();
        return loading::raised;
    }

    py::ref converted_;  // before what is borrowed from it
    py::acquired got_;
    std::optional<P> value_;
};

/// None, or what `P` takes.
template <class P>
    requires is_array<P>
class slot<std::optional<P>> {
public:
    slot() noexcept {}  // NOLINT(modernize-use-equals-default): as above
    [[nodiscard]] loading load(PyObject* obj, bool may_convert) noexcept {
        if (obj == Py_None) return loading::done;
        const loading answer = inner_.load(obj, may_convert);
        if (answer == loading::done) value_.emplace(inner_.value());
        return answer;
    }
    [[nodiscard]] std::optional<P>& value() noexcept { return value_; }

private:
    slot<P> inner_;
    std::optional<P> value_;
};

/// The first of several arrays that takes the object as it is, else the first that takes it converted.
template <class... P>
    requires(is_array<P> && ...)
class slot<std::variant<P...>> {
public:
    slot() noexcept {}  // NOLINT(modernize-use-equals-default): as above
    [[nodiscard]] loading load(PyObject* obj, bool may_convert) noexcept {
        loading answer = try_each(obj, false);
        if (answer == loading::refused && may_convert && (P::converts || ...)) answer = try_each(obj, true);
        return answer;
    }
    [[nodiscard]] std::variant<P...>& value() noexcept { return *value_; }

private:
    [[nodiscard]] loading try_each(PyObject* obj, bool may_convert) noexcept {
        loading answer = loading::refused;
        const auto attempt = [&]<class Q>(std::type_identity<Q>) {
            auto& room = room_.template emplace<slot<Q>>();
            answer = room.load(obj, may_convert);
            if (answer == loading::done) value_.emplace(std::in_place_type<Q>, room.value());
            return answer != loading::refused;
        };
        (void)(attempt(std::type_identity<P>{}) || ...);
        return answer;
    }

    std::variant<std::monostate, slot<P>...> room_;
    std::optional<std::variant<P...>> value_;
};

/// A tensor, kept for as long as the function likes.
template <>
class slot<tensor> {
public:
    [[nodiscard]] loading load(PyObject* obj, bool) noexcept {
        value_ = py::from_python(obj);
        return value_ ? loading::done : refuse_or_raise();
    }
    [[nodiscard]] tensor& value() noexcept { return *value_; }

private:
    std::optional<tensor> value_;
};

/// An array that keeps what it shows: for those inside of lists, tuples and dicts, whose elements may go away
/// while the function runs.
template <class Array>
[[nodiscard]] loading load_kept(PyObject* obj, bool may_convert, std::optional<Array>& out) noexcept try {
    py::ref source = py::ref::borrow(obj);
    if (!fits_capsule(obj, Array::wanted)) return loading::refused;
    auto owned = py::from_python(obj, {.writable = Array::wanted.writable});
    if (!owned) return refuse_or_raise();
    if (!check(*owned, Array::wanted)) {
        if (!Array::converts || !may_convert || !is_convertible(*owned, Array::wanted))
            return loading::refused;
        source = convert_argument(obj, *owned, Array::wanted);
        if (!source) return refuse_or_raise();
        owned = py::from_python(source.get());
        if (!owned) return refuse_or_raise();
        if (!check(*owned, Array::wanted)) return loading::refused;
        if (!report_conversion(obj, source.get(), text_of<Array>())) return loading::raised;
    }
    void* stream = nullptr;
    py::interpreter* const here = py::interpreter::current();
    if (here == nullptr || !py::current_stream(source.get(), owned->device(), stream)) return loading::raised;
    out.emplace(access::keep<Array>(std::move(*owned), stream, py::detail::keep_object(source.get(), here)));
    return loading::done;
} catch (...) {
    py::raise_caught();
    return loading::raised;
}

template <class>
inline constexpr bool is_slotted = false;
template <class P>
    requires is_array<P>
inline constexpr bool is_slotted<P> = true;
template <class P>
    requires is_array<P>
inline constexpr bool is_slotted<std::optional<P>> = true;
template <class... P>
    requires(is_array<P> && ...)
inline constexpr bool is_slotted<std::variant<P...>> = true;
template <>
inline constexpr bool is_slotted<tensor> = true;

/// The type is, or contains, an array or a tensor: a list of them, an optional one.
template <class T>
inline constexpr bool mentions_arrays = is_slotted<T>;
template <template <class...> class Container, class... T>
    requires(!is_slotted<Container<T...>>)
inline constexpr bool mentions_arrays<Container<T...>> = (mentions_arrays<std::remove_cvref_t<T>> || ...);

}  // namespace tenon::bind
