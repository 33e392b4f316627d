// tenon/py/raise.hpp: the one place where a refusal becomes a Python exception.
//
//   errc::not_an_array -> TypeError
//   errc::refused      -> BufferError
//   errc::malformed    -> tenon.MalformedError, which is a ValueError and a BufferError: a descriptor that
//                         contradicts itself is a bad value, and consumers of DLPack expect BufferError
//   errc::no_memory    -> MemoryError
#pragma once

#include <string>

#include <tenon/core/error.hpp>
#include <tenon/py/interpreter.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/ref.hpp>

namespace tenon::py {

namespace detail {

/// One type for all extension modules of an interpreter, whoever raises first: a new reference, or null with
/// an exception set.
[[nodiscard]] inline PyObject* shared_malformed_error() noexcept {
    static constexpr const char* name = "tenon.MalformedError";
    PyObject* const shared = PyInterpreterState_GetDict(PyInterpreterState_Get());
    const ref key = ref::take(PyUnicode_FromString(name));
    if (!key) return nullptr;
    if (shared != nullptr) {
        PyObject* const there = PyDict_GetItemWithError(shared, key.get());
        if (there != nullptr) return ref::borrow(there).release();
        if (PyErr_Occurred() != nullptr) return nullptr;
    }
    const ref bases = ref::take(PyTuple_Pack(2, PyExc_ValueError, PyExc_BufferError));
    ref made = bases ? ref::take(PyErr_NewExceptionWithDoc(
                           name, "The description of a tensor contradicts itself.", bases.get(), nullptr))
                     : ref();
    if (made && shared != nullptr && PyDict_SetItem(shared, key.get(), made.get()) != 0) return nullptr;
    return made.release();
}

}  // namespace detail

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
    if (here == nullptr) return nullptr;
    if (here->malformed_error == nullptr) here->malformed_error = detail::shared_malformed_error();
    return here->malformed_error;
}

inline void raise(errc code, const std::string& message) noexcept {
    PyObject* const type = exception_type(code);
    if (type != nullptr) PyErr_SetString(type, message.c_str());
}

/// Raises `e` as its exception, after `prefix`.
inline void raise(const error& e, const std::string& prefix = {}) noexcept try {
    raise(e.code, prefix + e.message());
} catch (...) {
    PyErr_NoMemory();
}

/// Shows `first` behind the exception now pending.
inline void chain_behind(ref first) noexcept {
#if PY_VERSION_HEX >= 0x030C0000
    const ref second = ref::take(PyErr_GetRaisedException());
    if (second && first && second.get() != first.get()) PyException_SetContext(second.get(), first.release());
    if (second) PyErr_SetRaisedException(ref::borrow(second.get()).release());
#else
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value != nullptr && first && value != first.get()) PyException_SetContext(value, first.release());
    PyErr_Restore(type, value, trace);
#endif
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

}  // namespace tenon::py
