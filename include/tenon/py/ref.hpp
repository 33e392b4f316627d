// tenon/py/ref.hpp: one owned reference to a Python object, and a pending exception kept safe for a while.
#pragma once

#include <utility>

#include <tenon/py/call.hpp>
#include <tenon/py/python.hpp>

namespace tenon::py {

/// Owns a reference, or nothing. Every operation needs an attached thread state.
class ref {
public:
    ref() noexcept = default;
    ref(ref&& other) noexcept : obj_(std::exchange(other.obj_, nullptr)) {}
    ref& operator=(ref&& other) noexcept {
        PyObject* old = std::exchange(obj_, std::exchange(other.obj_, nullptr));
        call::drop(old);  // last: it may run code that sees this ref
        return *this;
    }
    ref(const ref&) = delete;
    ref& operator=(const ref&) = delete;
    ~ref() {
        if (obj_ != nullptr) call::drop(obj_);
    }

    /// Takes over a new reference (null stays null).
    [[nodiscard]] static ref take(PyObject* owned) noexcept { return ref(owned); }
    [[nodiscard]] static ref borrow(PyObject* obj) noexcept {
        Py_XINCREF(obj);
        return ref(obj);
    }

    explicit operator bool() const noexcept { return obj_ != nullptr; }
    [[nodiscard]] PyObject* get() const noexcept { return obj_; }
    [[nodiscard]] PyObject* release() noexcept { return std::exchange(obj_, nullptr); }

private:
    explicit ref(PyObject* owned) noexcept : obj_(owned) {}
    PyObject* obj_ = nullptr;
};

/// The class of an object, held. A lookup in a class may run an `__eq__` among its keys, which may give the
/// object another class and let go of this one: whoever looks at a class more than once holds it.
[[nodiscard]] inline ref class_of(PyObject* obj) noexcept {
    return ref::borrow(reinterpret_cast<PyObject*>(Py_TYPE(obj)));
}
[[nodiscard]] inline PyTypeObject* as_type(const ref& held) noexcept {
    return reinterpret_cast<PyTypeObject*>(held.get());
}

/// Takes the pending exception aside for its lifetime and puts it back; what was raised in between is
/// reported as unraisable. Needs an attached thread state.
class error_guard {
public:
#if PY_VERSION_HEX >= 0x030C0000
    error_guard() noexcept {
        if (PyErr_Occurred() != nullptr) [[unlikely]]
            saved_ = PyErr_GetRaisedException();
    }
    ~error_guard() {
        if (PyErr_Occurred() != nullptr) [[unlikely]]
            call::write_unraisable();
        if (saved_ != nullptr) [[unlikely]]
            PyErr_SetRaisedException(saved_);
    }
#else
    error_guard() noexcept {
        if (PyErr_Occurred() != nullptr) [[unlikely]]
            PyErr_Fetch(&type_, &saved_, &trace_);
    }
    ~error_guard() {
        if (PyErr_Occurred() != nullptr) [[unlikely]]
            call::write_unraisable();
        if (type_ != nullptr) [[unlikely]]
            PyErr_Restore(type_, saved_, trace_);
    }
#endif
    error_guard(const error_guard&) = delete;
    error_guard& operator=(const error_guard&) = delete;

private:
    PyObject* saved_ = nullptr;
#if PY_VERSION_HEX < 0x030C0000
    PyObject* type_ = nullptr;
    PyObject* trace_ = nullptr;
#endif
};

}  // namespace tenon::py
