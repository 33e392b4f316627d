// src/py/runtime/arguments.hpp: reading the arguments of C functions, each with an error that names it.
#pragma once

#include "base.hpp"
#include "call.hpp"

namespace tenon::py::detail {

/// A function of whatever signature, as a method table has it.
template <class Function>
[[nodiscard]] PyCFunction as_method(Function function) noexcept {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

}  // namespace tenon::py::detail

namespace tenon::py::argument {

/// Raises TypeError with this text, or what came of making it: an object's own `__repr__` may raise. Always
/// false.
template <class... Args>
TENON_COLD bool type_error(const char* format, Args... args) noexcept {
    const ref text = ref::take(foreign_code([&] { return PyUnicode_FromFormat(format, args...); }));
    if (text) PyErr_SetObject(PyExc_TypeError, text.get());
    return false;
}

TENON_COLD inline bool wrong(const char* name, const char* wanted, PyObject* got) noexcept {
    return type_error("tenon: %s must be %s, not %.200R", name, wanted, got);
}
TENON_COLD inline bool unexpected(const char* function, PyObject* name) noexcept {
    return type_error("%s() got an unexpected keyword argument %R", function, name);
}

[[nodiscard]] inline bool read_optional_flag(const char* name, PyObject* value,
                                             std::optional<bool>& out) noexcept {
    if (value == Py_None) return true;
    if (!PyBool_Check(value)) return wrong(name, "True, False or None", value);
    out = value == Py_True;
    return true;
}

/// An integer, but not a truth value: 1; 0 when it is none or does not fit, -1 with an exception set.
TENON_HOT [[nodiscard]] inline int as_integer(PyObject* value, long long lowest, long long highest,
                                              long long& out) noexcept {
    const auto read = [&](PyObject* number) TENON_HOT_LAMBDA {
        int overflow = 0;
        out = PyLong_AsLongLongAndOverflow(number, &overflow);
        return overflow == 0 && out >= lowest && out <= highest ? 1 : 0;
    };
    if (PyLong_CheckExact(value)) [[likely]]
        return read(value);
    if (PyIndex_Check(value) == 0 || PyBool_Check(value)) return 0;
    const ref made = ref::take(call::index(value));
    return made ? read(made.get()) : -1;
}

/// False with an exception set when it is none or does not fit.
[[nodiscard]] inline bool read_integer(const char* name, const char* wanted, PyObject* value,
                                       long long lowest, long long highest, long long& out) noexcept {
    const int answer = as_integer(value, lowest, highest, out);
    return answer > 0 || (answer == 0 && wrong(name, wanted, value));
}

[[nodiscard]] inline bool read_pair(const char* name, const char* wanted, PyObject* value, long long lowest,
                                    long long highest, long long (&out)[2]) noexcept {
    if (!PyTuple_Check(value) || PyTuple_GET_SIZE(value) != 2) return wrong(name, wanted, value);
    int answer = as_integer(PyTuple_GET_ITEM(value, 0), lowest, highest, out[0]);
    if (answer > 0) answer = as_integer(PyTuple_GET_ITEM(value, 1), lowest, highest, out[1]);
    return answer > 0 || (answer == 0 && wrong(name, wanted, value));
}

/// A `(type, id)` pair, as DLPack has it, or a name like 'cuda:0'.
[[nodiscard]] inline bool read_device(const char* name, PyObject* value,
                                      std::optional<device>& out) noexcept {
    static constexpr const char* wanted = "None, a (type, id) pair of integers or a name like 'cuda:0'";
    if (value == Py_None) return true;
    if (PyUnicode_Check(value)) {
        Py_ssize_t size = 0;
        const char* const text = PyUnicode_AsUTF8AndSize(value, &size);
        if (text == nullptr) return false;
        out = device_from_name({text, static_cast<std::size_t>(size)});
        return out.has_value() || wrong(name, wanted, value);
    }
    long long pair[2] = {0, 0};
    if (!read_pair(name, wanted, value, std::numeric_limits<std::int32_t>::min(),
                   std::numeric_limits<std::int32_t>::max(), pair))
        return false;
    out = device{static_cast<std::int32_t>(pair[0]), static_cast<std::int32_t>(pair[1])};
    return true;
}

[[nodiscard]] inline bool read_stream(PyObject* value, std::optional<std::intptr_t>& out) noexcept {
    if (value == Py_None) return true;
    long long number = 0;
    if (!read_integer("stream", "None or an integer", value, std::numeric_limits<std::intptr_t>::min(),
                      std::numeric_limits<std::intptr_t>::max(), number))
        return false;
    out = static_cast<std::intptr_t>(number);
    return true;
}

/// Whether a keyword is this one: callers written in C use interned names, and Python interns its own.
TENON_HOT [[nodiscard]] inline bool is_named(PyObject* name, PyObject* known, const char* text) noexcept {
    return name == known || PyUnicode_CompareWithASCIIString(name, text) == 0;
}

/// Shows each keyword to `read(name, value)`; false at the first that it does not read.
template <class Read>
[[nodiscard]] bool read_keywords(PyObject* const* values, PyObject* names, Read&& read) noexcept {
    const Py_ssize_t count = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; i < count; ++i)
        if (!read(PyTuple_GET_ITEM(names, i), values[i])) return false;
    return true;
}

}  // namespace tenon::py::argument
