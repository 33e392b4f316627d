// src/bind/number.hpp: a number of Python's becomes an element, and an element a number.
#pragma once

#include <tenon/memory/allocate.hpp>
#include "../py/export/all.hpp"

namespace tenon::bind {

/// A number of Python's own, or of a class that is one: it is read without running code.
[[nodiscard]] inline bool is_number(PyObject* obj) noexcept {
    return PyFloat_Check(obj) || PyLong_Check(obj) || PyComplex_Check(obj);
}

/// One of Python's own, and no subclass: it can be nothing else.
[[nodiscard]] inline bool is_plain_number(PyObject* obj) noexcept {
    return PyFloat_CheckExact(obj) || PyLong_CheckExact(obj) || PyBool_Check(obj) ||
           PyComplex_CheckExact(obj);
}

/// Room for an element.
struct element_bits {
    alignas(8) std::byte bytes[16];

    template <class T>
    void put(T value, std::size_t at = 0) noexcept {
        std::memcpy(bytes + at * sizeof(T), &value, sizeof(T));
    }
};

/// The bits of a number in a format of 16 bits, rounded to the nearest; those of infinity if it is too large.
[[nodiscard]] inline std::uint16_t narrow(double value, int mantissa, int bias) noexcept {
    const auto sign = static_cast<unsigned>(std::signbit(value)) << 15U;
    const auto shift = static_cast<unsigned>(mantissa);
    const unsigned infinity = (2U * static_cast<unsigned>(bias) + 1U) << shift;
    if (std::isnan(value)) return static_cast<std::uint16_t>(infinity | (1U << (shift - 1U)));
    if (value == 0 || std::isinf(value))
        return static_cast<std::uint16_t>(sign | (value == 0 ? 0 : infinity));
    const int exponent = std::max(std::ilogb(value), 1 - bias);
    // With the hidden one, which counts as one more of the exponent; there is none below the lowest.
    const double scaled = std::nearbyint(std::ldexp(std::abs(value), mantissa - exponent));
    if (exponent > bias) return static_cast<std::uint16_t>(sign | infinity);
    const auto bits = (static_cast<unsigned>(exponent + bias - 1) << shift) + static_cast<unsigned>(scaled);
    return static_cast<std::uint16_t>(sign | std::min(bits, infinity));
}

/// Stores a real number as the element `at` of this type, in which what is finite stays so. Null, or why not.
[[nodiscard]] inline const char* store_real(double value, dtype type, element_bits& out,
                                            std::size_t at = 0) noexcept {
    static constexpr const char* too_large = "it is too large for the element type; take a wider one";
    if (type == dtype_of<double>) {
        out.put(value, at);
    } else if (type == dtype_of<float>) {
        const auto narrowed = static_cast<float>(value);
        if (std::isinf(narrowed) && !std::isinf(value)) return too_large;
        out.put(narrowed, at);
    } else if (type == dtype{abi::type_code::float_, 16} || type == dtype{abi::type_code::bfloat, 16}) {
        const bool is_half = type.code == abi::type_code::float_;
        const std::uint16_t bits = is_half ? narrow(value, 10, 15) : narrow(value, 7, 127);
        const unsigned infinity = is_half ? 0x7C00U : 0x7F80U;
        if ((bits & 0x7FFFU) == infinity && !std::isinf(value)) return too_large;
        out.put(bits, at);
    } else {
        return "no number is known for its element type; pass an array of that type";
    }
    return nullptr;
}

/// Stores an int, which must be in the range of the type.
[[nodiscard]] inline const char* store_integer(PyObject* obj, dtype type, element_bits& out) noexcept {
    static constexpr const char* out_of_range = "it is out of the range of the element type";
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(obj, &overflow);
    bool fits = overflow == 0;
    if (type.is_unsigned_integer()) {
        if (overflow > 0) {
            value = static_cast<long long>(PyLong_AsUnsignedLongLong(obj));
            fits = PyErr_Occurred() == nullptr && type.bits == 64;
            PyErr_Clear();
        } else {
            fits = fits && value >= 0 && (type.bits >= 63 || value >> type.bits == 0);
        }
    } else if (fits && type.bits < 64) {
        const long long rest = value >> (type.bits - 1);
        fits = rest == 0 || rest == -1;
    }
    if (!fits) return out_of_range;
    // The low bytes come first: the machines that Tenon runs on are of that order.
    out.put(value);
    return nullptr;
}

/// A float or an int as a float; an infinity for an int that is too large.
[[nodiscard]] inline double real_of(PyObject* obj) noexcept {
    const double value = PyFloat_Check(obj) ? PyFloat_AS_DOUBLE(obj) : PyLong_AsDouble(obj);
    if (!PyErr_Occurred()) return value;
    PyErr_Clear();
    return std::numeric_limits<double>::infinity();
}

/// Stores a number as an element of this type, an int as a real number only if it may be converted. Null, or
/// why that cannot be.
[[nodiscard]] inline const char* store_number(PyObject* obj, dtype type, bool may_convert,
                                              element_bits& out) noexcept {
    const bool is_real = PyFloat_Check(obj), is_bool = PyBool_Check(obj);
    if (type.lanes != 1) return "no number is known for its element type; pass an array of that type";
    if (type.is_bool()) {
        if (!is_bool) return "only True and False are taken for the element type; pass x != 0";
        out.put(static_cast<std::uint8_t>(obj == Py_True ? 1 : 0));
        return nullptr;
    }
    if (PyComplex_Check(obj) && !type.is_complex()) return "its imaginary part would be lost; pass its .real";
    if (type.is_integer())
        return is_real ? "its fraction might be lost; pass int(x)" : store_integer(obj, type, out);
    const double real = PyComplex_Check(obj) ? 0 : real_of(obj);
    if (!is_real && std::isinf(real))
        return real > 0 ? "it is too large for the element type; pass float('inf')"
                        : "it is too large for the element type; pass float('-inf')";
    if (type.is_complex()) {
        const dtype part{
            type.code == abi::type_code::bcomplex ? abi::type_code::bfloat : abi::type_code::float_,
            static_cast<std::uint8_t>(type.bits / 2)};
        if (!PyComplex_Check(obj) && !may_convert) return "it is not complex, and must not be converted";
        const Py_complex value =
            PyComplex_Check(obj) ? reinterpret_cast<PyComplexObject*>(obj)->cval : Py_complex{real, 0};
        const char* const problem = store_real(value.real, part, out);
        return problem != nullptr ? problem : store_real(value.imag, part, out, 1);
    }
    if (!is_real && !may_convert) return "it is an int, and must not be converted";
    return store_real(real, type, out);
}

/// Memory for one number. Throws.
[[nodiscard]] inline tensor new_number(dtype type, const axes& shape) {
    if (shape.size() != 0) {
        PyErr_SetString(PyExc_TypeError,
                        "tenon: empty_like: a number has no library that could make an array "
                        "with axes; give it another array to be like");
        throw py::python_error();
    }
    auto made = allocate(type, extents());
    if (!made) {
        py::raise(made.error(), "tenon: ");
        throw py::python_error();
    }
    made->mark_number();
    return std::move(*made);
}

/// The element as a number: a new reference, or null with an exception set.
[[nodiscard]] inline PyObject* number_to_python(const tensor_ref& t) noexcept {
    const auto found = read_number(t.dtype(), t.data());
    if (found) return py::to_python(*found);
    PyErr_SetString(PyExc_TypeError, "tenon: no number of Python's is known for this element type");
    return nullptr;
}

}  // namespace tenon::bind
