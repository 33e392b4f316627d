// python/src/tensor_type.hpp: the Python type tenon.Tensor.
#pragma once

#include <tenon/core/tensor.hpp>
#include <tenon/py/python.hpp>

namespace tenon::module {

/// A new heap type for one interpreter; null with an exception set.
[[nodiscard]] PyObject* make_tensor_type(PyObject* module) noexcept;

/// The tensor inside an instance, or null when the garbage collector has cleared it.
[[nodiscard]] const tensor* held_tensor(PyObject* self) noexcept;

/// Wraps a tensor in an instance of `type`; null with an exception set.
[[nodiscard]] PyObject* wrap_tensor(PyTypeObject* type, tensor&& t) noexcept;

}  // namespace tenon::module
