// src/py/export/number.cpp: a tensor of one element as a number of Python's: int(), float(), bool().
//
// Without these Python takes whatever has a buffer for text, and reads digits in it.
#include "all.hpp"

namespace tenon::py::detail {

/// Always TypeError, as Python has it for what is no number.
TENON_COLD inline ref no_number(const char* function, const std::string& why) noexcept {
    PyErr_Format(PyExc_TypeError, "tenon: %s is for a Tensor of one element %s", function, why.c_str());
    return {};
}

TENON_INLINE ref only_element(answer::source s, PyObject* self, const char* function) noexcept try {
    acquired room;
    const tensor_ref* const t = s.read(self, room);
    if (t == nullptr) return {};
    if (t->size() != 1)
        return no_number(function,
                         sentence({"and this one has ", t->size(), "; pick one, or ask for `t.size`"}));
    if (!t->device().is_host_accessible())
        return no_number(function,
                         sentence({"that can be read here, and this one is on ", name(t->device()),
                                   "; take a copy on the host first: asdlpack(t, device=\"cpu\")"}));
    if (!finish_device_work(t->device(), s.lends)) return {};
    const auto found = read_number(t->dtype(), t->data());
    return found ? ref::take(to_python(*found))
                 : no_number(function,
                             sentence({"that is a number, and this one is of type ", name(t->dtype())}));
} catch (...) {
    raise_caught();
    return {};
}

/// The same, but nothing complex.
[[nodiscard]] inline ref only_real(answer::source s, PyObject* self, const char* function) noexcept {
    ref number = only_element(s, self, function);
    if (!number || PyComplex_CheckExact(number.get()) == 0) return number;
    PyErr_Format(PyExc_TypeError, "tenon: %s would drop the imaginary part; use complex()", function);
    return {};
}

TENON_INLINE PyObject* answer::as_int(source s, PyObject* self) noexcept {
    const ref number = only_real(s, self, "int()");
    return number ? PyNumber_Long(number.get()) : nullptr;  // no foreign code: a number of Python's own
}

TENON_INLINE PyObject* answer::as_float(source s, PyObject* self) noexcept {
    const ref number = only_real(s, self, "float()");
    return number ? PyNumber_Float(number.get()) : nullptr;  // no foreign code: a number of Python's own
}

TENON_INLINE int answer::as_bool(source s, PyObject* self) noexcept {
    const ref number = only_element(s, self, "bool()");
    return number ? call::is_true(number.get()) : -1;
}

}  // namespace tenon::py::detail
