// src/py/export/number.hpp: a tensor of one element as a number of Python's: int(), float(), complex(),
// bool(), operator.index().
//
// Without these Python takes whatever has a buffer for text, and reads digits in it.
#pragma once

#include "../import/all.hpp"

namespace tenon::py {

/// The number as Python has it: a bool, an int, a float or a complex.
[[nodiscard]] inline PyObject* to_python(const number& n) noexcept {
    switch (n.is) {
        case number::kind::boolean:
            return PyBool_FromLong(static_cast<long>(n.integer));
        case number::kind::integer:
            return PyLong_FromLongLong(n.integer);
        case number::kind::natural:
            return PyLong_FromUnsignedLongLong(static_cast<unsigned long long>(n.integer));
        case number::kind::real:
            return PyFloat_FromDouble(n.real);
        default:
            return PyComplex_FromDoubles(n.real, n.imaginary);
    }
}

namespace detail {

/// Always TypeError, as Python has it for what is no number; null.
TENON_COLD inline PyObject* no_number(const char* function, const std::string& why) noexcept {
    return PyErr_Format(PyExc_TypeError, "tenon: %s is for a Tensor of one element %s", function,
                        why.c_str());
}

/// The one element of `t`; nothing with TypeError set where there is none that can be read here. `stays_put`
/// says that what is queued may be waited for.
[[nodiscard]] inline std::optional<number> only_element(const tensor_ref& t, bool stays_put,
                                                        const char* function) noexcept try {
    if (t.size() != 1) {
        no_number(function,
                  "and this one has " + std::to_string(t.size()) + "; pick one, or ask for `t.size`");
    } else if (!t.device().is_host_accessible()) {
        no_number(function, "that can be read here, and this one is on " + name(t.device()) +
                                "; take a copy on the host first: asdlpack(t, device=\"cpu\")");
    } else if (finish_device_work(t.device(), stays_put)) {
        const auto found = read_number(t.dtype(), t.data());
        if (!found) no_number(function, "that is a number, and this one is of type " + name(t.dtype()));
        return found;
    }
    return std::nullopt;
} catch (...) {
    raise_caught();
    return std::nullopt;
}

/// The same, but nothing complex.
[[nodiscard]] inline std::optional<number> only_real(const tensor_ref& t, bool stays_put,
                                                     const char* function) noexcept {
    const auto n = only_element(t, stays_put, function);
    if (!n || n->is != number::kind::complex) return n;
    PyErr_Format(PyExc_TypeError, "tenon: %s would drop the imaginary part; use complex()", function);
    return std::nullopt;
}

[[nodiscard]] inline double as_double(const number& n) noexcept {
    if (n.is == number::kind::natural) return static_cast<double>(static_cast<std::uint64_t>(n.integer));
    return n.is == number::kind::real || n.is == number::kind::complex ? n.real
                                                                       : static_cast<double>(n.integer);
}

}  // namespace detail

[[nodiscard]] inline PyObject* answer_int(const tensor_ref& t, bool stays_put) noexcept {
    const auto n = detail::only_real(t, stays_put, "int()");
    if (!n) return nullptr;
    if (n->is == number::kind::real) return PyLong_FromDouble(n->real);
    return n->is == number::kind::boolean ? PyLong_FromLongLong(n->integer) : to_python(*n);
}

[[nodiscard]] inline PyObject* answer_float(const tensor_ref& t, bool stays_put) noexcept {
    const auto n = detail::only_real(t, stays_put, "float()");
    return n ? PyFloat_FromDouble(detail::as_double(*n)) : nullptr;
}

[[nodiscard]] inline PyObject* answer_complex(const tensor_ref& t, bool stays_put) noexcept {
    const auto n = detail::only_element(t, stays_put, "complex()");
    return n ? PyComplex_FromDoubles(detail::as_double(*n), n->imaginary) : nullptr;
}

/// 1, 0, or -1 with an exception set.
[[nodiscard]] inline int answer_bool(const tensor_ref& t, bool stays_put) noexcept {
    const auto n = detail::only_element(t, stays_put, "bool()");
    if (!n) return -1;
    return n->integer != 0 || n->real != 0 || n->imaginary != 0 ? 1 : 0;
}

/// Integers without axes alone: where there are axes, `bytes(t)` must find the memory and not a length.
[[nodiscard]] inline PyObject* answer_index(const tensor_ref& t, bool stays_put) noexcept {
    if (t.ndim() != 0 || !t.dtype().is_integer()) {
        PyErr_SetString(PyExc_TypeError,
                        "tenon: only a Tensor of one integer and without axes is an index; use int()");
        return nullptr;
    }
    const auto n = detail::only_element(t, stays_put, "operator.index()");
    return n ? to_python(*n) : nullptr;
}

}  // namespace tenon::py
