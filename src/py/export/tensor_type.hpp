// src/py/export/tensor_type.hpp: the objects of this module's own type of Tensors, and how the type is made:
// the package's, or the one that stands in for it.
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

/// The object that the memory of a Tensor belongs to, borrowed; null where only its producer knows.
[[nodiscard]] inline PyObject* owner_of(const tensor_object& t) noexcept {
    return t.owner != nullptr ? t.owner : object_behind(t.held.owner());
}

/// A property: what `Read` makes of the object.
template <auto Read>
constexpr PyGetSetDef make_property(const char* name, const char* doc) noexcept {
    const auto get = [](PyObject* self, void*) noexcept -> PyObject* {
        try {
            return Read(*as_tensor_object(self));
        } catch (const std::bad_alloc&) {
            return PyErr_NoMemory();
        }
    };
    return {name, get, nullptr, doc, nullptr};
}

/// NumPy's own word for the element type; null with BufferError set where it has none.
[[nodiscard]] TENON_API PyObject* numpy_dtype_of(const tensor_object& t) noexcept;

/// The type, with the protocols and what else the stand-in has, and `more`: a new reference, or null with an
/// exception set.
[[nodiscard]] TENON_API PyObject* make_tensor_type(const char* type_name,
                                                   std::span<const PyType_Slot> more) noexcept;

/// A new object of the type, which takes the tensor; null with an exception set, and `t` left as it was. The
/// two objects are what another module says of the owner: see tensor_object.
[[nodiscard]] TENON_API PyObject* make_tensor_object(tensor& t, interpreter& here,
                                                     PyObject* referenced = nullptr,
                                                     PyObject* owner = nullptr) noexcept;

/// The one element of an object's tensor as a number of Python's; nothing with TypeError set, in which
/// `function` is named, where there is none that can be read here.
[[nodiscard]] TENON_API ref only_element(answer::source s, PyObject* self, const char* function) noexcept;

}  // namespace detail

/// This module's own type of Tensors in this interpreter: borrowed, or null with an exception set.
[[nodiscard]] TENON_API PyTypeObject* producer_type() noexcept;

/// The tensor inside an object of `producer_type()`.
[[nodiscard]] inline const tensor* held_tensor(PyObject* self) noexcept {
    return &detail::as_tensor_object(self)->held;
}

}  // namespace tenon::py
