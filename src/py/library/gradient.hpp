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
    const ref key = ref::take(PyUnicode_InternFromString("__name__"));
    PyObject* found = nullptr;
    if (globals && key) (void)call::dict_item(globals.get(), key.get(), &found);
    const ref name = ref::take(found);
    const char* const text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
    PyErr_Clear();
    if (text == nullptr) return false;
    const std::string_view module = text;
    for (const library_row& f : known_libraries)
        if (f.guarded && f.name == module.substr(0, module.find('.'))) return true;
    return false;
}

}  // namespace detail
}  // namespace tenon::py
