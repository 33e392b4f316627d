// src/py/export/number.cpp: a tensor of one element as a number of Python's: int(), float(), complex(),
// bool(), operator.index().
//
// Without these Python takes whatever has a buffer for text, and reads digits in it.
#include "all.hpp"

namespace tenon::py::detail {

/// Always TypeError, as Python has it for what is no number; null.
TENON_COLD inline PyObject* no_number(const char* function, const std::string& why) noexcept {
    return PyErr_Format(PyExc_TypeError, "tenon: %s is for a Tensor of one element %s", function,
                        why.c_str());
}

/// The one element of an object's tensor; nothing with an exception set where there is none that can be read
/// here.
[[nodiscard]] inline std::optional<number> only_element(answer::source s, PyObject* self,
                                                        const char* function) noexcept try {
    acquired room;
    const tensor_ref* const t = s.read(self, room);
    if (t == nullptr) return std::nullopt;
    if (t->size() != 1) {
        no_number(function,
                  "and this one has " + std::to_string(t->size()) + "; pick one, or ask for `t.size`");
    } else if (!t->device().is_host_accessible()) {
        no_number(function, "that can be read here, and this one is on " + name(t->device()) +
                                "; take a copy on the host first: asdlpack(t, device=\"cpu\")");
    } else if (finish_device_work(t->device(), s.lends)) {
        const auto found = read_number(t->dtype(), t->data());
        if (!found) no_number(function, "that is a number, and this one is of type " + name(t->dtype()));
        return found;
    }
    return std::nullopt;
} catch (...) {
    raise_caught();
    return std::nullopt;
}

/// The same, but nothing complex.
[[nodiscard]] inline std::optional<number> only_real(answer::source s, PyObject* self,
                                                     const char* function) noexcept {
    const auto n = only_element(s, self, function);
    if (!n || n->is != number::kind::complex) return n;
    PyErr_Format(PyExc_TypeError, "tenon: %s would drop the imaginary part; use complex()", function);
    return std::nullopt;
}

[[nodiscard]] inline double as_double(const number& n) noexcept {
    if (n.is == number::kind::natural) return static_cast<double>(static_cast<std::uint64_t>(n.integer));
    return n.is == number::kind::real || n.is == number::kind::complex ? n.real
                                                                       : static_cast<double>(n.integer);
}

TENON_INLINE PyObject* answer::as_int(source s, PyObject* self) noexcept {
    const auto n = only_real(s, self, "int()");
    if (!n) return nullptr;
    if (n->is == number::kind::real) return PyLong_FromDouble(n->real);
    return n->is == number::kind::boolean ? PyLong_FromLongLong(n->integer) : to_python(*n);
}

TENON_INLINE PyObject* answer::as_float(source s, PyObject* self) noexcept {
    const auto n = only_real(s, self, "float()");
    return n ? PyFloat_FromDouble(as_double(*n)) : nullptr;
}

TENON_INLINE PyObject* answer::as_complex(source s, PyObject* self, PyObject*) noexcept {
    const auto n = only_element(s, self, "complex()");
    return n ? PyComplex_FromDoubles(as_double(*n), n->imaginary) : nullptr;
}

TENON_INLINE int answer::as_bool(source s, PyObject* self) noexcept {
    const auto n = only_element(s, self, "bool()");
    if (!n) return -1;
    return n->integer != 0 || n->real != 0 || n->imaginary != 0 ? 1 : 0;
}

/// Integers without axes alone: where there are axes, `bytes(t)` must find the memory and not a length.
TENON_INLINE PyObject* answer::as_index(source s, PyObject* self) noexcept {
    acquired room;
    const tensor_ref* const t = s.read(self, room);
    if (t == nullptr) return nullptr;
    if (t->ndim() != 0 || !t->dtype().is_integer()) {
        PyErr_SetString(PyExc_TypeError,
                        "tenon: only a Tensor of one integer and without axes is an index; use int()");
        return nullptr;
    }
    const auto n = only_element(s, self, "operator.index()");
    return n ? to_python(*n) : nullptr;
}

}  // namespace tenon::py::detail
