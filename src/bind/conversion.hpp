// src/bind/conversion.hpp: asking the caller's library to convert an argument, and telling whoever wants to
// know.
#pragma once

#include <tenon/bind/conversion.hpp>
#include <tenon/bind/parameter.hpp>
#include "../py/export/all.hpp"
#include "words.hpp"

namespace tenon::bind {

/// The tensor lacks nothing but what the caller's library can, and may, convert: element type and order, and
/// with them the address. Asked before, so that nothing is copied, and reported, in vain.
[[nodiscard]] inline bool is_convertible(const tensor_ref& t, const parameter_spec& spec) noexcept {
    if (spec.converting == conversions::none) return false;
    request wanted = spec.wanted;
    if (wanted.type && !can_convert(t.dtype(), *wanted.type, spec.converting == conversions::narrowing))
        return false;
    wanted.type.reset();
    wanted.order = memory_order::any;
    wanted.alignment = 1;
    return static_cast<bool>(check(t, wanted));
}

/// What stays pending after false is no answer, but an interruption, say.
[[nodiscard]] inline bool has_attribute(PyObject* obj, const char* name) noexcept {
    const bool found = static_cast<bool>(py::ref::take(py::call::attr(obj, name)));
    if (!found && !py::is_no_answer_pending()) PyErr_Clear();
    return found;
}

/// The array with another element type: `astype` of most libraries, `to` of PyTorch. Null with an exception
/// set.
[[nodiscard]] inline py::ref convert_type(PyObject* obj, dtype type) {
    const py::ref library = py::detail::element_types_of(obj);
    const std::string text = name(type);
    py::ref word = library ? py::ref::take(py::call::attr(library.get(), text.c_str())) : py::ref();
    if (!word) {
        if (PyErr_Occurred() != nullptr && py::is_no_answer_pending()) return {};
        PyErr_Clear();
        word = py::ref::take(PyUnicode_FromString(text.c_str()));
    }
    if (!word) return {};
    const char* const method = has_attribute(obj, "astype") ? "astype" : "to";
    if (PyErr_Occurred() != nullptr) return {};
    return py::ref::take(py::call::method(obj, method, "O", word.get()));
}

/// The array in another order: `contiguous` of PyTorch, `ascontiguousarray` and `asfortranarray` of the
/// others.
[[nodiscard]] inline py::ref convert_order(PyObject* obj, memory_order order) {
    if (order == memory_order::c && has_attribute(obj, "contiguous"))
        return py::ref::take(py::call::method(obj, "contiguous", ""));
    if (PyErr_Occurred() != nullptr) return {};
    const py::ref library = py::detail::element_types_of(obj);
    if (!library) {
        if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_TypeError, "tenon: the array has no library");
        return {};
    }
    const char* const function = order == memory_order::c ? "ascontiguousarray" : "asfortranarray";
    return py::ref::take(py::call::method(library.get(), function, "O", obj));
}

/// What the library of `obj` makes of it to meet `wanted`, as far as element type and order go. Null with an
/// exception set when it cannot.
[[nodiscard]] inline py::ref convert_argument(PyObject* obj, const tensor_ref& got, const request& wanted) {
    py::ref made = py::ref::borrow(obj);
    bool in_order = false;
    const auto look = [&](const tensor_ref& t) noexcept {
        in_order = static_cast<bool>(check(t, {.order = wanted.order}));
    };
    look(got);
    if (wanted.type && *wanted.type != got.dtype()) {
        made = convert_type(obj, *wanted.type);
        if (!made || !py::borrow(made.get(), {}, look)) return {};
    }
    return in_order ? std::move(made) : convert_order(made.get(), wanted.order);
}

TENON_PRIVATE inline std::atomic<conversion_hook> conversion_reporter{nullptr};

/// Tells the hook, if there is one. False with its exception set.
[[nodiscard]] inline bool report_conversion(PyObject* from, PyObject* to, const char* expected) {
    const conversion_hook hook = conversion_reporter.load();
    if (hook == nullptr) return true;
    hook({from, to, expected});
    return PyErr_Occurred() == nullptr;
}

}  // namespace tenon::bind

namespace tenon {

TENON_INLINE conversion_hook set_conversion_hook(conversion_hook hook) noexcept {
    return bind::conversion_reporter.exchange(hook);
}

TENON_INLINE void warn_of_conversion(const conversion& c) {
    const std::string text =
        "tenon: an argument of type " + bind::type_name(c.from) + " was copied to become " + c.expected;
    if (PyErr_Occurred() != nullptr) return;
    foreign_code([&] { return PyErr_WarnEx(PyExc_RuntimeWarning, text.c_str(), 1); });
}

}  // namespace tenon
