// src/bind/convert.hpp: an argument of another element type or order becomes what is asked for, by its own
// library.
#pragma once

#include <tenon/bind/argument.hpp>
#include "../py/export/all.hpp"
#include "words.hpp"

namespace tenon::bind {

/// The tensor lacks nothing but what the caller's library can, and may, convert: element type and order, and
/// with them the address. Asked before, so that nothing is copied, and reported, in vain.
[[nodiscard]] inline bool is_convertible(const tensor_ref& t, const parameter_spec& spec) noexcept {
    const std::optional<dtype> type = wanted_type(t.dtype(), spec.wanted);
    if (spec.converting == conversions::none ||
        (type && spec.converting != conversions::lossy &&
         !can_convert(t.dtype(), *type, spec.converting == conversions::narrowing)))
        return false;
    request others = without_conversion(spec.wanted);
    others.alignment = 1;
    return static_cast<bool>(check(t, others));
}

/// What stays pending after false is no answer, but an interruption, say.
[[nodiscard]] inline bool has_attribute(PyObject* obj, const char* name) noexcept {
    const bool found = static_cast<bool>(py::ref::take(py::call::attr(obj, name)));
    if (!found) (void)py::forget_answer();
    return found;
}

/// The array with another element type: `astype` of most libraries, `to` of PyTorch. Null with an exception
/// set.
[[nodiscard]] inline py::ref convert_type(PyObject* obj, dtype type) {
    const py::ref library = py::detail::element_types_of(obj);
    const std::string text = name(type);
    py::ref word = library ? py::ref::take(py::call::attr(library.get(), text.c_str())) : py::ref();
    if (!word && py::forget_answer()) word = py::ref::take(PyUnicode_FromString(text.c_str()));
    if (!word) return {};
    const char* const method = has_attribute(obj, "astype") ? "astype" : "to";
    if (PyErr_Occurred() != nullptr) return {};
    return py::ref::take(py::call::method(obj, method, "O", word.get()));
}

/// The array in another order: `contiguous` of PyTorch, `ascontiguousarray` and `asfortranarray` of the
/// others. Null with an exception set.
[[nodiscard]] inline py::ref convert_order(PyObject* obj, memory_order order) {
    if (order != memory_order::f && has_attribute(obj, "contiguous"))
        return py::ref::take(py::call::method(obj, "contiguous", ""));
    if (PyErr_Occurred() != nullptr) return {};
    const py::ref library = py::detail::element_types_of(obj);
    if (!library) {
        if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_TypeError, "tenon: the array has no library");
        return {};
    }
    const char* const function = order == memory_order::f ? "asfortranarray" : "ascontiguousarray";
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
    const std::optional<dtype> type = wanted_type(got.dtype(), wanted);
    if (type && *type != got.dtype()) {
        made = convert_type(obj, *type);
        if (!made || !py::borrow(made.get(), {}, look)) return {};
    }
    return in_order ? std::move(made) : convert_order(made.get(), wanted.order);
}

TENON_PRIVATE inline std::atomic<conversion_hook> conversion_reporter{nullptr};

}  // namespace tenon::bind
