// tenon/py/ref.hpp: one owned reference to a Python object.
#pragma once

#include <concepts>
#include <utility>

#include <tenon/detail/foreign_code.hpp>
#include <tenon/py/python.hpp>

namespace tenon::py {

namespace detail {

/// Lets go of a reference, which may run code of others.
TENON_COLD inline void drop(PyObject* obj) noexcept {
    foreign_code([&] { Py_XDECREF(obj); });
}

/// What the binders have for objects: `nanobind::object`, `pybind11::handle` and those derived from them.
template <class Handle>
concept binder_handle = requires(const Handle& h) {
    { h.ptr() } -> std::convertible_to<PyObject*>;
};

}  // namespace detail

/// Owns a reference, or nothing. Every operation needs an attached thread state.
class ref {
public:
    ref() noexcept = default;
    ref(ref&& other) noexcept : obj_(std::exchange(other.obj_, nullptr)) {}
    ref& operator=(ref&& other) noexcept {
        PyObject* old = std::exchange(obj_, std::exchange(other.obj_, nullptr));
        detail::drop(old);  // last: it may run code that sees this ref
        return *this;
    }
    ref(const ref&) = delete;
    ref& operator=(const ref&) = delete;
    ~ref() {
        if (obj_ != nullptr) detail::drop(obj_);
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

}  // namespace tenon::py
