// src/py/runtime/raise.cpp: errors and C++ exceptions become Python's.
#include "all.hpp"

namespace tenon::py {

TENON_INLINE PyObject* exception_type(errc code) noexcept {
    if (code == errc::not_an_array || code == errc::not_taken) return PyExc_TypeError;
    if (code == errc::refused) return PyExc_BufferError;
    if (code == errc::no_memory) return PyExc_MemoryError;
    if (code == errc::mismatched) return PyExc_ValueError;
    interpreter* const here = interpreter::current();
    return here != nullptr ? here->malformed_error : nullptr;
}

TENON_COLD TENON_INLINE std::nullptr_t raise(errc code, const std::string& message) noexcept {
    detail::look_after_exception([&] {
        PyObject* const type = exception_type(code);
        if (type != nullptr) PyErr_SetString(type, message.c_str());
    });
    return nullptr;
}

TENON_COLD TENON_INLINE std::nullptr_t raise(const error& e, std::string_view prefix) noexcept try {
    return raise(e.code, sentence({prefix, e.message()}));
} catch (...) {
    detail::look_after_exception([] { PyErr_NoMemory(); });
    return nullptr;
}

/// An exception of the interpreter it came up in.
struct held_exception {
    ref exception;
    interpreter* home;
    std::atomic<std::size_t> holders{1};
};

/// Takes the pending exception. Null, and it stays pending, when there is no memory for it.
[[nodiscard]] inline held_exception* take_pending() noexcept {
    ref exception = pending_exception();
    if (!exception) return nullptr;
    interpreter* const home = interpreter::current();
    auto* const made = home != nullptr ? new (std::nothrow) held_exception{{}, home} : nullptr;
    if (made != nullptr)
        made->exception = std::move(exception);
    else
        restore_exception(std::move(exception));
    return made;
}

TENON_COLD TENON_INLINE python_error::python_error() noexcept {
    detail::look_after_exception([&] { held_ = take_pending(); });
}
TENON_COLD TENON_INLINE python_error::python_error(const tenon::error& e) noexcept : python_error() {
    error_ = e;
}
TENON_COLD TENON_INLINE python_error::python_error(const python_error& other) noexcept
    : std::exception(other), held_(other.held_), error_(other.error_) {
    if (held_ != nullptr) held_->holders.fetch_add(1, std::memory_order_relaxed);
}
TENON_COLD TENON_INLINE python_error::~python_error() {
    if (held_ == nullptr || held_->holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    held_->home->enter([&] { delete held_; });
}
TENON_COLD TENON_INLINE void python_error::restore() const noexcept {
    if (held_ != nullptr && held_->home->is_here() && PyErr_Occurred() == nullptr)
        restore_exception(ref::borrow(held_->exception.get()));
}

namespace detail {

TENON_COLD TENON_INLINE void raise_again(const python_error& e) noexcept {
    e.restore();
    if (PyErr_Occurred() == nullptr && e.error()) raise(*e.error(), "tenon: ");
    if (PyErr_Occurred() != nullptr) return;
    PyErr_SetString(PyExc_RuntimeError,
                    "tenon: py::python_error was thrown, and no Python exception was pending there: set one "
                    "first, on the same thread");
}

/// The same on a thread that is attached.
inline void raise_caught_attached() noexcept {
    if (PyErr_Occurred() != nullptr) return;
    try {
        throw;
    } catch (const python_error& e) {
        raise_again(e);
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    } catch (const std::out_of_range& e) {  // as the binders have it, from here on
        PyErr_SetString(PyExc_IndexError, e.what());
    } catch (const std::invalid_argument& e) {
        PyErr_SetString(PyExc_ValueError, e.what());
    } catch (const std::domain_error& e) {
        PyErr_SetString(PyExc_ValueError, e.what());
    } catch (const std::overflow_error& e) {
        PyErr_SetString(PyExc_OverflowError, e.what());
    } catch (const std::exception& e) {
        PyErr_SetString(PyExc_RuntimeError, e.what());
    } catch (...) {
        PyErr_SetString(PyExc_RuntimeError, "tenon: a C++ exception of an unknown type was thrown");
    }
}

}  // namespace detail

TENON_COLD TENON_INLINE void raise_caught() noexcept {
    detail::look_after_exception(detail::raise_caught_attached);
}

}  // namespace tenon::py
