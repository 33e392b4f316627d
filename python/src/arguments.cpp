// python/src/arguments.cpp: reading the keyword arguments of the module's functions.
#include "arguments.hpp"

#include <climits>
#include <cstring>

namespace tenon::module {

namespace {

using py::ref;

bool wrong(const char* name, const char* wanted, PyObject* got) noexcept {
    PyErr_Format(PyExc_TypeError, "tenon: %s must be %s, not %R", name, wanted, got);
    return false;
}

bool read_flag(const char* name, PyObject* value, bool& out) noexcept {
    if (!PyBool_Check(value)) return wrong(name, "True or False", value);
    out = value == Py_True;
    return true;
}

bool is_integer(PyObject* value) noexcept { return PyIndex_Check(value) != 0 && !PyBool_Check(value); }

/// A pair of integers that fit `long`.
bool read_pair(PyObject* value, long (&out)[2]) noexcept {
    if (!PyTuple_Check(value) || PyTuple_GET_SIZE(value) != 2) return false;
    for (Py_ssize_t i = 0; i < 2; ++i) {
        PyObject* const item = PyTuple_GET_ITEM(value, i);
        if (!is_integer(item)) return false;
        const ref number = ref::take(PyNumber_Index(item));
        out[i] = number ? PyLong_AsLong(number.get()) : -1;
        if (PyErr_Occurred() != nullptr) return false;
    }
    return true;
}

bool read_device(const char* name, PyObject* value, std::optional<device>& out) noexcept {
    static constexpr const char* wanted = "None, a (type, id) pair of integers or a name like 'cuda:0'";
    if (PyUnicode_Check(value)) {
        const char* const text = PyUnicode_AsUTF8(value);
        if (text == nullptr) return false;
        out = device_from_name(text);
        return out.has_value() || wrong(name, wanted, value);
    }
    long pair[2];
    if (!read_pair(value, pair) || pair[0] < INT32_MIN || pair[0] > INT32_MAX || pair[1] < INT32_MIN ||
        pair[1] > INT32_MAX) {
        if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_OverflowError) == 0) return false;
        PyErr_Clear();
        return wrong(name, wanted, value);
    }
    out = device{static_cast<std::int32_t>(pair[0]), static_cast<std::int32_t>(pair[1])};
    return true;
}

bool read_one(const char* name, PyObject* value, keywords& out) noexcept {
    const auto is = [&](const char* known) { return std::strcmp(name, known) == 0; };
    if (is("writable")) return read_flag(name, value, out.writable);
    if (is("trust_legacy")) return read_flag(name, value, out.trust_legacy);
    if (value == Py_None) return true;
    if (is("copy")) {
        bool flag = false;
        if (!read_flag(name, value, flag)) return false;
        out.copy = flag;
        return true;
    }
    if (is("stream")) {
        if (!is_integer(value)) return wrong(name, "None or an integer", value);
        const Py_ssize_t number = PyNumber_AsSsize_t(value, PyExc_OverflowError);
        if (number == -1 && PyErr_Occurred() != nullptr) return false;
        out.stream = static_cast<std::intptr_t>(number);
        return true;
    }
    if (is("max_version")) {
        long pair[2];
        if (!read_pair(value, pair)) {
            if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_OverflowError) == 0) return false;
            PyErr_Clear();
            return wrong(name, "None or a (major, minor) pair of integers", value);
        }
        out.major = pair[0];
        return true;
    }
    return read_device(name, value, out.where);
}

}  // namespace

bool read_keywords(const char* function, const char* const* allowed, PyObject* names, PyObject* const* values,
                   keywords& out) noexcept {
    const Py_ssize_t count = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* const name = PyTuple_GET_ITEM(names, i);
        const char* const* known = allowed;
        while (*known != nullptr && PyUnicode_CompareWithASCIIString(name, *known) != 0) ++known;
        if (*known == nullptr) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument %R", function, name);
            return false;
        }
        if (!read_one(*known, values[i], out)) return false;
    }
    return true;
}

}  // namespace tenon::module
