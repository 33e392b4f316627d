// src/py/library/gradient.hpp: a warning for memory of a tensor that requires grad on its way to a library
// that will write to it.
#pragma once

#include "library_of.hpp"

namespace tenon::py {

TENON_PRIVATE inline constexpr const char gradient_warning[] =
    "this memory belongs to a tensor that requires grad, and torch has no read-only tensors: writing to it "
    "gives wrong gradients; pass tensor.detach() where that is wanted, or copy=True for memory of its own";

namespace detail {

/// Says it, at the line so many Python frames up; false with an exception set where warnings are errors.
TENON_COLD [[nodiscard]] inline bool warn_of_gradient(Py_ssize_t frames_up) noexcept {
    const ref category = imported_attr("tenon", "ReadOnlyWarning");
    if (!forget_answer()) return false;  // otherwise the package need not be there
    PyObject* const kind = category ? category.get() : PyExc_UserWarning;
    return foreign_code([&] { return PyErr_WarnEx(kind, gradient_warning, frames_up); }) == 0;
}

/// Whether the Python code that is running is that of a library whose tensors require grad: by DLPack nobody
/// says who asks.
TENON_COLD [[nodiscard]] inline bool is_asked_by_guarded_library() noexcept {
    const ref globals = ref::borrow(PyEval_GetGlobals());
    const ref name = globals ? ref::take(call::dict_item(globals.get(), "__name__")) : ref();
    const char* const text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
    PyErr_Clear();
    const std::string_view module = text != nullptr ? text : "";
    return is_any(known_libraries, [&](const library_row& row) {
        return row.guarded && row.name == module.substr(0, module.find('.'));
    });
}

}  // namespace detail
}  // namespace tenon::py
