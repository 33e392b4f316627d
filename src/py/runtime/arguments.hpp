// src/py/runtime/arguments.hpp: reading the arguments of C functions, those of `__dlpack__` too, each with an
// error that names it.
#pragma once

#include "base.hpp"
#include "interpreter.hpp"

namespace tenon::py {

namespace detail {

/// A function of whatever signature, as a method table has it.
template <class Function>
[[nodiscard]] PyCFunction as_method(Function function) noexcept {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

}  // namespace detail

/// The keywords of `__dlpack__`; None and absent are the same.
struct dlpack_keywords {
    std::optional<std::intptr_t> stream;
    std::optional<device> where;
    std::optional<bool> copy;
    long major = 0;  ///< of `max_version`; 0 asks for a legacy struct
};

namespace argument {

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

[[nodiscard]] inline bool read_flag(const char* name, PyObject* value, bool& out) noexcept {
    if (!PyBool_Check(value)) return wrong(name, "True or False", value);
    out = value == Py_True;
    return true;
}
[[nodiscard]] inline bool read_optional_flag(const char* name, PyObject* value,
                                             std::optional<bool>& out) noexcept {
    if (value == Py_None) return true;
    if (!PyBool_Check(value)) return wrong(name, "True, False or None", value);
    out = value == Py_True;
    return true;
}

/// An integer, but not a truth value; false with an exception set when it is none or does not fit.
[[nodiscard]] inline bool read_integer(const char* name, const char* wanted, PyObject* value,
                                       long long lowest, long long highest, long long& out) noexcept {
    if (PyIndex_Check(value) == 0 || PyBool_Check(value)) return wrong(name, wanted, value);
    const ref number = ref::take(call::index(value));
    if (!number) return false;
    int overflow = 0;
    out = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
    if (overflow != 0 || out < lowest || out > highest) return wrong(name, wanted, value);
    return out != -1 || PyErr_Occurred() == nullptr;
}

[[nodiscard]] inline bool read_pair(const char* name, const char* wanted, PyObject* value, long long lowest,
                                    long long highest, long long (&out)[2]) noexcept {
    if (!PyTuple_Check(value) || PyTuple_GET_SIZE(value) != 2) return wrong(name, wanted, value);
    if (PyLong_CheckExact(PyTuple_GET_ITEM(value, 0)) && PyLong_CheckExact(PyTuple_GET_ITEM(value, 1)))
        [[likely]] {  // no code of others runs: nothing has to be kept
        for (int i = 0; i < 2; ++i) {
            int overflow = 0;
            out[i] = PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(value, i), &overflow);
            if (overflow != 0 || out[i] < lowest || out[i] > highest) return wrong(name, wanted, value);
        }
        return true;
    }
    const ref first = ref::borrow(PyTuple_GET_ITEM(value, 0));
    const ref second = ref::borrow(PyTuple_GET_ITEM(value, 1));
    const auto is_integer = [](PyObject* item) { return PyIndex_Check(item) != 0 && !PyBool_Check(item); };
    if (!is_integer(first.get()) || !is_integer(second.get())) return wrong(name, wanted, value);
    return read_integer(name, wanted, first.get(), lowest, highest, out[0]) &&
           read_integer(name, wanted, second.get(), lowest, highest, out[1]);
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

[[nodiscard]] inline bool read_max_version(PyObject* value, long& major) noexcept {
    if (value == Py_None) return true;
    long long pair[2] = {0, 0};
    if (!read_pair("max_version", "None or a (major, minor) pair of integers", value, 0,
                   std::numeric_limits<std::uint32_t>::max(), pair))
        return false;
    major = pair[0] == 0 ? 0 : 1;
    return true;
}

/// Whether a keyword is this one: callers written in C use interned names, and Python interns its own.
TENON_HOT [[nodiscard]] inline bool is_named(PyObject* name, PyObject* known, const char* text) noexcept {
    return name == known || PyUnicode_CompareWithASCIIString(name, text) == 0;
}

}  // namespace argument

/// Reads the vectorcall arguments of `__dlpack__`: keywords alone. False with TypeError set otherwise.
[[nodiscard]] inline bool read_dlpack_keywords(const interpreter& known, PyObject* const* args,
                                               Py_ssize_t positional, PyObject* names,
                                               dlpack_keywords& out) noexcept {
    if (positional != 0) {
        PyErr_SetString(PyExc_TypeError, "__dlpack__() takes keyword arguments only");
        return false;
    }
    const Py_ssize_t count = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* const name = PyTuple_GET_ITEM(names, i);
        bool read = false;
        if (argument::is_named(name, known.max_version, "max_version"))
            read = argument::read_max_version(args[i], out.major);
        else if (argument::is_named(name, known.stream, "stream"))
            read = argument::read_stream(args[i], out.stream);
        else if (argument::is_named(name, known.dl_device, "dl_device"))
            read = argument::read_device("dl_device", args[i], out.where);
        else if (argument::is_named(name, known.copy, "copy"))
            read = argument::read_optional_flag("copy", args[i], out.copy);
        else
            read = argument::unexpected("__dlpack__", name);
        if (!read) return false;
    }
    return true;
}

}  // namespace tenon::py
