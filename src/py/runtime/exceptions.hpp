// src/py/runtime/exceptions.hpp: exceptions of Python's: set without the GIL, kept aside while memory is let
// go of, chained, forgotten, told from answers.
#pragma once

#include "base.hpp"
#include "call.hpp"

namespace tenon::py {

/// What is said of it, after what was called.
inline constexpr const char* needs_gil =
    " needs the GIL, which this thread does not hold; call it before the GIL is released, or take it back "
    "for the call";

namespace detail {

/// Runs `fn` with the GIL: on a thread that has let go of it, or has never had it, it is taken for that.
/// False when the interpreter is gone, or going.
template <class Fn>
bool run_attached(Fn&& fn) noexcept {
    if (attached_thread_state() != nullptr) [[likely]]
        return (fn(), true);
    if (Py_IsInitialized() == 0 || is_finalizing()) return false;
    const PyGILState_STATE state = foreign_code([] { return PyGILState_Ensure(); });
    fn();
    PyGILState_Release(state);
    return true;
}

/// The same for `set`, which sets an exception: it stands when the thread takes the GIL back. A thread that
/// Python knows nothing of has nowhere to keep one: there it is reported.
template <class Set>
void raise_attached(Set&& set) noexcept {
    if (attached_thread_state() != nullptr) [[likely]]
        return set();
    const bool is_known = Py_IsInitialized() != 0 && PyGILState_GetThisThreadState() != nullptr;
    (void)run_attached([&] {
        set();
        if (!is_known) call::write_unraisable();
    });
}

TENON_COLD inline void raise_detached() noexcept {
    raise_attached([] { PyErr_Format(PyExc_RuntimeError, "tenon: this%s", needs_gil); });
}

}  // namespace detail

/// Takes the pending exception aside for its lifetime and puts it back; what was raised in between is
/// reported as unraisable. Needs an attached thread state.
class error_guard {
public:
    error_guard() noexcept {
        if (PyErr_Occurred() != nullptr) [[unlikely]]
            take();
    }
    ~error_guard() {
        if (PyErr_Occurred() != nullptr) [[unlikely]]
            call::write_unraisable();
        if (saved_ != nullptr) [[unlikely]]
            put_back();
    }
    error_guard(const error_guard&) = delete;
    error_guard& operator=(const error_guard&) = delete;

private:
    PyObject* saved_ = nullptr;
#if PY_VERSION_HEX >= 0x030C0000
    void take() noexcept { saved_ = PyErr_GetRaisedException(); }
    void put_back() noexcept { PyErr_SetRaisedException(saved_); }
#else
    void take() noexcept { PyErr_Fetch(&saved_, &value_, &trace_); }
    void put_back() noexcept { PyErr_Restore(saved_, value_, trace_); }
    PyObject* value_ = nullptr;
    PyObject* trace_ = nullptr;
#endif
};

namespace detail {

/// Resets a tensor or a keep_alive when the scope ends, whoever has its contents by then: the owner's own
/// code runs, and may neither see nor lose the exception that the function is about to return with.
template <class Kept>
class taken {
public:
    TENON_HOT explicit taken(Kept& kept) noexcept : kept_(kept) {}
    taken(const taken&) = delete;
    taken& operator=(const taken&) = delete;
    TENON_HOT ~taken() {
        if (owner_of(kept_)) [[unlikely]]
            reset_guarded();
        else
            kept_.reset();
    }

private:
    TENON_COLD void reset_guarded() noexcept {
        std::optional<error_guard> keep;
        // Without the GIL there is nothing to guard: what is released finds its own way to it.
        if (attached_thread_state() != nullptr) keep.emplace();
        kept_.reset();
    }
    // NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter): asked of `kept_` alone
    TENON_HOT static const keep_alive& owner_of(const keep_alive& owner) noexcept { return owner; }
    TENON_HOT static const keep_alive& owner_of(const tensor& t) noexcept { return t.owner(); }

    Kept& kept_;
};

}  // namespace detail

/// The class of an object, held. A lookup in a class may run an `__eq__` among its keys, which may give the
/// object another class and let go of this one: whoever looks at a class more than once holds it.
[[nodiscard]] inline ref class_of(PyObject* obj) noexcept {
    return ref::borrow(reinterpret_cast<PyObject*>(Py_TYPE(obj)));
}
[[nodiscard]] inline PyTypeObject* as_type(const ref& held) noexcept {
    return reinterpret_cast<PyTypeObject*>(held.get());
}

/// The exception type a failure is raised as: borrowed, or null with an exception set.
[[nodiscard]] TENON_API PyObject* exception_type(errc code) noexcept;

/// Makes an exception taken off before the pending one again.
inline void restore_exception(ref exception) noexcept {
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(exception.release());
#else
    PyObject* const value = exception.release();
    PyErr_Restore(ref::borrow(reinterpret_cast<PyObject*>(Py_TYPE(value))).release(), value,
                  PyException_GetTraceback(value));
#endif
}

/// Takes the pending exception off as an object.
[[nodiscard]] inline ref pending_exception() noexcept {
#if PY_VERSION_HEX >= 0x030C0000
    return ref::take(PyErr_GetRaisedException());
#else
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value != nullptr && trace != nullptr) PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return ref::take(value);
#endif
}

namespace detail {

/// The last of the exceptions behind this one, or nothing when there are too many to be looked through: they
/// may go round in a circle.
[[nodiscard]] inline ref last_context(PyObject* exception) noexcept {
    static constexpr int most = 1000;
    ref last = ref::borrow(exception);
    for (int i = 0; i < most; ++i) {
        ref next = ref::take(PyException_GetContext(last.get()));
        if (!next) return last;
        last = std::move(next);
    }
    return {};
}

}  // namespace detail

/// Shows `first` behind the exception now pending, and behind whatever that has behind it already.
inline void chain_behind(ref first) noexcept {
    ref second = pending_exception();
    if (!second) return;
    if (first) {
        const ref last = detail::last_context(second.get());
        const ref end = detail::last_context(first.get());
        // Chains that meet end alike: putting one behind the other would close a circle.
        if (last && end && last.get() != end.get()) PyException_SetContext(last.get(), first.release());
    }
    restore_exception(std::move(second));
}

/// Puts an exception raised earlier before the one now pending, if any.
inline void raise_again(ref earlier) noexcept {
    ref later = pending_exception();
    restore_exception(std::move(earlier));
    chain_behind(std::move(later));
}

/// The pending exception is no answer to what was asked, and stands: Ctrl-C, an exit, no memory, too deep.
[[nodiscard]] inline bool is_no_answer_pending() noexcept {
    return PyErr_ExceptionMatches(PyExc_Exception) == 0 || PyErr_ExceptionMatches(PyExc_MemoryError) != 0 ||
           PyErr_ExceptionMatches(PyExc_RecursionError) != 0;
}

/// Forgets an exception that is an answer. False when one stands.
[[nodiscard]] inline bool forget_answer() noexcept {
    if (PyErr_Occurred() == nullptr) return true;
    if (is_no_answer_pending()) return false;
    PyErr_Clear();
    return true;
}

/// Notes `cause`, if any, as what the pending exception comes from.
inline void blame(ref cause) noexcept {
    ref raised = cause ? pending_exception() : ref();
    if (!raised) return;
    PyException_SetContext(raised.get(), ref::borrow(cause.get()).release());
    PyException_SetCause(raised.get(), cause.release());
    restore_exception(std::move(raised));
}

}  // namespace tenon::py
