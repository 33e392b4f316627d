// src/py/export/values.hpp: what a tensor says of itself, as Python has it, and the protocols that count
// steps in bytes.
#pragma once

#include "../import/all.hpp"

namespace tenon::py {

/// The step along an axis in bytes. One that is never taken may be anything, and need not fit: then it is
/// that of a single element.
[[nodiscard]] inline Py_ssize_t byte_stride(const tensor_ref& t, std::size_t axis) noexcept {
    std::int64_t bytes = 0;
    if (tenon::detail::mul_overflows(t.stride(axis), t.itemsize(), bytes)) bytes = t.itemsize();
    return static_cast<Py_ssize_t>(bytes);
}

/// Where the elements are; nothing at all lies somewhere, too, because consumers take null for a fault.
[[nodiscard]] inline void* address_of(const tensor_ref& t) noexcept {
    alignas(64) static char nothing[64] = {};
    return t.empty() ? nothing : t.data();
}

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

/// A tuple of what `number(i)` says of each axis; null with an exception set.
template <class Number>
[[nodiscard]] PyObject* tuple_of_axes(std::size_t rank, Number&& number) noexcept {
    ref out = ref::take(PyTuple_New(static_cast<Py_ssize_t>(rank)));
    for (std::size_t i = 0; out && i < rank; ++i) {
        PyObject* const item = PyLong_FromLongLong(number(i));
        if (item == nullptr) return nullptr;
        PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), item);
    }
    return out.release();
}
[[nodiscard]] inline PyObject* tuple_of(extents values) noexcept {
    return tuple_of_axes(values.size(), [&](std::size_t i) { return values[i]; });
}
[[nodiscard]] inline PyObject* text_of(std::string_view text) noexcept {
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

}  // namespace detail
}  // namespace tenon::py
