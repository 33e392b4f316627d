// src/py/export/producer_type.hpp: the objects of the Python type `Tensor`, and whom their memory belongs to.
#pragma once

#include <tenon/py/export.hpp>
#include <tenon/py/producer.hpp>
#include "../import/all.hpp"

namespace tenon::py {

namespace detail {

struct tensor_object {
    chained_object head;
    PyObject* weak_references;  // next, so that its offset is known without asking a C++ type for it
    tensor held;
    gpu::ready_event ready;  ///< when the memory is ready, unless its stream says it
    // Of memory that another module handed over, what that says of its owner: borrowed, alive as long as
    // `held`.
    PyObject* referenced;
    PyObject* owner;
};

[[nodiscard]] inline tensor_object* as_tensor_object(PyObject* self) noexcept {
    return reinterpret_cast<tensor_object*>(self);
}

/// Reads the objects of our own type.
struct TENON_PRIVATE tensor_source {
    [[nodiscard]] static bool is_own(PyObject* obj, const interpreter& here) noexcept {
        return reinterpret_cast<PyObject*>(Py_TYPE(obj)) ==
               here.producer_type.load();  // it has no subclasses
    }
    [[nodiscard]] static const tensor_ref* read(PyObject* self, acquired&) noexcept {
        return &as_tensor_object(self)->held;
    }
    [[nodiscard]] static const gpu::ready_event& ready(PyObject* self) noexcept {
        return as_tensor_object(self)->ready;
    }
    static constexpr producer_source source TENON_PRIVATE{&read, &is_own, &ready, true};
};

/// The owner as the collector may see it. Before 3.13 it would clear a memoryview that still lends its
/// buffer, which then crashes (gh-77894): neither that may be seen, nor what 3.12 puts between a `__buffer__`
/// and it.
[[nodiscard]] inline PyObject* visible_owner(const tensor_object& t) noexcept {
    PyObject* const owner = t.referenced != nullptr ? t.referenced : referenced_by(t.held.owner());
#if PY_VERSION_HEX < 0x030D0000
    if (owner != nullptr &&
        (PyMemoryView_Check(owner) || std::strcmp(Py_TYPE(owner)->tp_name, "_buffer_wrapper") == 0))
        return nullptr;
#endif
    return owner;
}

/// The object that the memory of a Tensor belongs to, borrowed; null where only its producer knows.
[[nodiscard]] inline PyObject* owner_of(const tensor_object& t) noexcept {
    return t.owner != nullptr ? t.owner : object_behind(t.held.owner());
}
/// The same as people want to know it: of a Tensor over a Tensor, what the last of them belongs to.
[[nodiscard]] inline PyObject* root_owner_of(const tensor_object& t) noexcept {
    PyObject* owner = owner_of(t);
    const interpreter* const here = interpreter::current();
    if (here == nullptr) PyErr_Clear();
    while (owner != nullptr && here != nullptr && tensor_source::is_own(owner, *here)) {
        PyObject* const next = owner_of(*as_tensor_object(owner));
        if (next == nullptr) break;
        owner = next;
    }
    return owner;
}

}  // namespace detail

/// This module's own type of Tensors in this interpreter: the package's, or the one that stands in for it.
/// Borrowed, or null with an exception set.
[[nodiscard]] TENON_API PyTypeObject* producer_type() noexcept;

/// The tensor inside an object of `producer_type()`.
[[nodiscard]] inline const tensor* held_tensor(PyObject* self) noexcept {
    return &detail::as_tensor_object(self)->held;
}

}  // namespace tenon::py
