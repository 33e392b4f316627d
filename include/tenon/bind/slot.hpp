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
#include <tenon/bind/second_look.hpp>
#include <tenon/py/acquired.hpp>
#include <tenon/py/import.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/tensor/request.hpp>
#include <tenon/tensor/tensor.hpp>
#include "../../../src/py/runtime/driver.hpp"

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

/// The tensor lacks nothing but what the caller's library can, and may, convert: element type and order, and
/// with them the address. Asked before, so that nothing is copied, and reported, in vain.
[[nodiscard]] inline bool is_convertible(const tensor_ref& t, request wanted, conversions how) noexcept {
    if (wanted.type && !may_become(t.dtype(), *wanted.type, how)) return false;
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

/// Room for an argument of type `P`, good for the length of the call. `load` may be called once. When all
/// arguments have been loaded, and before the function runs, `settle_all` takes what can be taken once: a
/// bare capsule that fits is only looked at until then, so that a call that is refused for another argument
/// leaves it for the next overload, or whoever else wants it. False with an exception set when it is gone by
/// then. What is borrowed is looked at again there if need be: see second_look.hpp for what a room can tell.
template <class P>
class slot;

/// An array, borrowed: for PyTorch's tensors and NumPy's arrays without an allocation or a Python call.
template <class P>
    requires is_array<P>
class slot<P> {
public:
    slot() noexcept {}  // NOLINT(modernize-use-equals-default): = default would let a tuple zero the storage
    [[nodiscard]] loading load(PyObject* obj, bool may_convert) noexcept {
        got_.looking = PyCapsule_CheckExact(obj);
        if (!reach(obj, P::wanted.writable, got_)) [[unlikely]]
            return refuse_or_raise();
        if (!check(got_, P::wanted)) [[unlikely]] {
            if constexpr (P::converts) {
                if (may_convert && is_convertible(got_, P::wanted, P::converting)) return load_converted(obj);
            }
            return loading::refused;
        }
        return lend(obj);
    }
    [[nodiscard]] bool is_settled() const noexcept { return !got_.looking; }
    [[nodiscard]] bool settle() noexcept { return is_settled() || take_capsule(); }
    [[nodiscard]] bool ran_code() const noexcept {
        // What NumPy's struct lends has no version.
        return got_.ran_code || (got_.version().major != 0 && py::is_torch_mode_in_force());
    }
    [[nodiscard]] bool is_borrowed() const noexcept { return got_.owner.release_function() == nullptr; }
    [[nodiscard]] bool hold() noexcept {
        return !is_borrowed() || look_now() != sight::unclear || take_to_keep();
    }
    [[nodiscard]] sight look() noexcept {
        const sight seen = is_borrowed() ? look_now() : sight::same;
        if (seen == sight::changed) raise_changed(value_->object());
        return seen;
    }
    [[nodiscard]] P& value() noexcept { return *value_; }

private:
    [[nodiscard]] loading lend(PyObject* obj) noexcept {
        // What the host is to read, the device must have written: managed and pinned memory.
        if constexpr (P::wanted.space == memory_space::host) {
            if (!got_.device().is_cpu()) [[unlikely]] {
                got_.ran_code = true;  // it waits without the GIL
                if (!py::detail::finish_device_work(got_.device())) return loading::raised;
                value_.emplace(access::lend<P>(got_, obj));
                const bool is_sure = got_.looking || (hold() && look() == sight::same);
                return is_sure ? loading::done : loading::raised;
            }
        }
        value_.emplace(access::lend<P>(got_, obj));
        return loading::done;
    }
    [[nodiscard]] sight look_now() const noexcept {
        return look_again(value_->object(), got_, P::wanted.writable);
    }
    [[nodiscard]] bool take_to_keep() noexcept {
        PyObject* const obj = value_->object();
        py::acquired now;
        now.owning = true;
        if (!py::detail::acquire(obj, P::wanted.writable, now)) return false;
        const bool may_write = !P::wanted.writable || !now.is_read_only();
        if (is_same_memory(now, got_) && may_write)
            got_.owner = std::move(now.owner);
        else
            raise_changed(obj);
        return !is_borrowed();
    }
    TENON_COLD [[nodiscard]] bool take_capsule() noexcept {
        PyObject* const capsule = value_->object();
        value_.reset();
        got_.looking = false;
        if (!reach(capsule, P::wanted.writable, got_)) return false;
        if (auto met = check(got_, P::wanted); !met) return py::raise(met.error(), "tenon: ") != nullptr;
        return lend(capsule) == loading::done;
    }
    [[nodiscard]] loading load_converted(PyObject* obj) noexcept try {
        got_.ran_code = true;
        converted_ = convert_argument(obj, got_, P::wanted);
        if (!converted_) return refuse_or_raise();
        got_.owner.reset();
        got_.looking = false;
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
    [[nodiscard]] bool is_settled() const noexcept { return !value_ || inner_.is_settled(); }
    [[nodiscard]] bool settle() noexcept {
        if (is_settled()) return true;
        value_.reset();
        if (!inner_.settle()) return false;
        value_.emplace(inner_.value());
        return true;
    }
    [[nodiscard]] bool ran_code() const noexcept { return inner_.ran_code(); }
    [[nodiscard]] bool is_borrowed() const noexcept { return value_ && inner_.is_borrowed(); }
    [[nodiscard]] bool hold() noexcept { return !is_borrowed() || inner_.hold(); }
    [[nodiscard]] sight look() noexcept { return value_ ? inner_.look() : sight::same; }
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
    [[nodiscard]] bool is_settled() const noexcept {
        return ask(room_, true, [](const auto& room) { return room.is_settled(); });
    }
    [[nodiscard]] bool settle() noexcept {
        return is_settled() || ask(room_, true, [&]<class Q>(slot<Q>& room) {
                   if (!room.settle()) return false;
                   value_.emplace(std::in_place_type<Q>, room.value());
                   return true;
               });
    }
    [[nodiscard]] bool ran_code() const noexcept { return ran_code_; }
    [[nodiscard]] bool is_borrowed() const noexcept {
        return ask(room_, false, [](const auto& room) { return room.is_borrowed(); });
    }
    [[nodiscard]] bool hold() noexcept {
        return ask(room_, true, [](auto& room) { return room.hold(); });
    }
    [[nodiscard]] sight look() noexcept {
        return ask(room_, sight::same, [](auto& room) { return room.look(); });
    }
    [[nodiscard]] std::variant<P...>& value() noexcept { return *value_; }

private:
    [[nodiscard]] loading try_each(PyObject* obj, bool may_convert) noexcept {
        loading answer = loading::refused;
        const auto attempt = [&]<class Q>(std::type_identity<Q>) {
            auto& room = room_.template emplace<slot<Q>>();
            answer = room.load(obj, may_convert);
            ran_code_ = ran_code_ || room.ran_code();
            if (answer == loading::done) value_.emplace(std::in_place_type<Q>, room.value());
            return answer != loading::refused;
        };
        (void)(attempt(std::type_identity<P>{}) || ...);
        return answer;
    }
    /// What `fn` says of the room that was loaded.
    template <class Rooms, class Answer, class Fn>
    [[nodiscard]] static Answer ask(Rooms& rooms, Answer none, Fn&& fn) noexcept {
        return std::visit(
            [&]<class Room>(Room& room) -> Answer {
                if constexpr (std::is_same_v<std::remove_const_t<Room>, std::monostate>)
                    return none;
                else
                    return fn(room);
            },
            rooms);
    }

    std::variant<std::monostate, slot<P>...> room_;
    std::optional<std::variant<P...>> value_;
    bool ran_code_ = false;
};

/// A tensor, kept for as long as the function likes.
template <>
class slot<tensor> {
public:
    [[nodiscard]] loading load(PyObject* obj, bool) noexcept {
        if (PyCapsule_CheckExact(obj)) {
            capsule_ = obj;
            return fits_capsule(obj, {}) ? loading::done : loading::refused;
        }
        value_ = py::from_python(obj);
        return value_ ? loading::done : refuse_or_raise();
    }
    [[nodiscard]] bool is_settled() const noexcept { return capsule_ == nullptr; }
    [[nodiscard]] bool settle() noexcept {
        if (capsule_ != nullptr) value_ = py::from_python(std::exchange(capsule_, nullptr));
        return value_.has_value();
    }
    [[nodiscard]] tensor& value() noexcept { return *value_; }

private:
    PyObject* capsule_ = nullptr;
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
        if (!Array::converts || !may_convert || !is_convertible(*owned, Array::wanted, Array::converting))
            return loading::refused;
        source = convert_argument(obj, *owned, Array::wanted);
        if (!source) return refuse_or_raise();
        owned = py::from_python(source.get());
        if (!owned) return refuse_or_raise();
        if (!check(*owned, Array::wanted)) return loading::refused;
        if (!report_conversion(obj, source.get(), text_of<Array>())) return loading::raised;
    }
    py::interpreter* const here = py::interpreter::current();
    if (here == nullptr) return loading::raised;
    out.emplace(access::keep<Array>(std::move(*owned), py::detail::keep_object(source.get(), here)));
    return loading::done;
} catch (...) {
    py::raise_caught();
    return loading::raised;
}

/// Loads and settles at once: for what stands alone.
template <class Room>
[[nodiscard]] loading load_settled(Room& room, PyObject* obj, bool may_convert) noexcept {
    const loading answer = room.load(obj, may_convert);
    return answer != loading::done || settle(room) ? answer : refuse_or_raise();
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
