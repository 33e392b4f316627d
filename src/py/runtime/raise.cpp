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
    detail::raise_attached([&] {
        PyObject* const type = exception_type(code);
        if (type != nullptr) PyErr_SetString(type, message.c_str());
    });
    return nullptr;
}

TENON_COLD TENON_INLINE std::nullptr_t raise(const error& e, std::string_view prefix) noexcept try {
    return raise(e.code, sentence({prefix, e.message()}));
} catch (...) {
    detail::raise_attached([] { PyErr_NoMemory(); });
    return nullptr;
}

namespace detail {

TENON_COLD TENON_INLINE void raise_again(const python_error& e) noexcept {
    if (PyErr_Occurred() == nullptr && e.error()) raise(*e.error(), "tenon: ");
    if (PyErr_Occurred() != nullptr) return;
    PyErr_SetString(PyExc_RuntimeError,
                    "tenon: py::python_error was thrown, and no Python exception is pending: it was cleared, "
                    "or came up on another thread");
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
    detail::raise_attached(detail::raise_caught_attached);
}

}  // namespace tenon::py
