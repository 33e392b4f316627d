// tenon/py/raise.hpp: the one place where a refusal becomes a Python exception.
//
//   errc::not_an_array -> TypeError
//   errc::refused      -> BufferError
//   errc::malformed    -> tenon.MalformedError, which is a ValueError and a BufferError: a descriptor that
//                         contradicts itself is a bad value, and consumers of DLPack expect BufferError
//   errc::no_memory    -> MemoryError
#pragma once

#include <cstddef>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <tenon/detail/config.hpp>
#include <tenon/py/attached.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/python_error.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/value/error.hpp>
#include "../../../src/py/runtime/interpreter.hpp"

namespace tenon::py {

/// The exception type a failure is raised as: borrowed, or null with an exception set.
[[nodiscard]] inline PyObject* exception_type(errc code) noexcept {
    switch (code) {
        case errc::not_an_array:
            return PyExc_TypeError;
        case errc::refused:
            return PyExc_BufferError;
        case errc::no_memory:
            return PyExc_MemoryError;
        case errc::malformed:
            break;
    }
    interpreter* const here = interpreter::current();
    return here != nullptr ? here->malformed_error : nullptr;
}

/// Null, so that a function that returns an object can say `return raise(...)`.
inline std::nullptr_t raise(errc code, const std::string& message) noexcept {
    detail::raise_attached([&] {
        PyObject* const type = exception_type(code);
        if (type != nullptr) PyErr_SetString(type, message.c_str());
    });
    return nullptr;
}

/// MemoryError, also on a thread that has let go of the GIL.
inline std::nullptr_t raise_no_memory() noexcept {
    detail::raise_attached([] { PyErr_NoMemory(); });
    return nullptr;
}

/// Raises `e` as its exception, after `prefix`.
inline std::nullptr_t raise(const error& e, std::string_view prefix = {}) noexcept try {
    return raise(e.code, std::string(prefix) + e.message());
} catch (...) {
    return raise_no_memory();
}

/// Raises the C++ exception being handled, for the C function it must not leave. A Python exception that is
/// pending already stands.
TENON_COLD inline void raise_caught() noexcept {
    if (PyErr_Occurred() != nullptr) return;
    try {
        throw;
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

/// Raises `e` with `cause`, if any, as what it comes from.
inline std::nullptr_t raise_from(const error& e, std::string_view prefix, ref cause) noexcept {
    raise(e, prefix);
    blame(std::move(cause));
    return nullptr;
}

}  // namespace tenon::py
