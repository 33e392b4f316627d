// tenon/py/own.hpp: memory that belongs to an object of Python's becomes a tensor, which keeps the object.
#pragma once

#include <type_traits>
#include <utility>

#include <tenon/py/ref.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon::py {

namespace detail {

/// Keeps the object, by a reference of its own or by the one that `is_given`, which is taken in any case.
[[nodiscard]] TENON_API result<tensor> own_object(PyObject* obj, bool is_given,
                                                  const tensor_info& info) noexcept;

}  // namespace detail

/// A tensor of memory that a Python object keeps alive: `py::own(obj, tensor_info::contiguous(data, {3}))`.
/// The description is the caller's word: nothing is asked of the object. A pointer and a handle are borrowed,
/// and a reference more is taken; what is moved in, a `py::ref`, a `nanobind::object`, a `pybind11::object`,
/// is taken in any case.
///
/// May be called, and the tensor dropped, on any thread, with the GIL or without: it is taken where that is
/// needed. What is dropped when the interpreter has gone is left alone.
[[nodiscard]] inline result<tensor> own(PyObject* obj, const tensor_info& info) noexcept {
    return detail::own_object(obj, false, info);
}
[[nodiscard]] inline result<tensor> own(ref&& obj, const tensor_info& info) noexcept {
    return detail::own_object(obj.release(), true, info);
}
template <detail::binder_handle Handle>
[[nodiscard]] result<tensor> own(const Handle& obj, const tensor_info& info) noexcept {
    return detail::own_object(obj.ptr(), false, info);
}
template <detail::binder_handle Handle>
    requires(!std::is_lvalue_reference_v<Handle> && !std::is_const_v<Handle> &&
             requires(Handle& h) { h.release().ptr(); })
[[nodiscard]] result<tensor> own(Handle&& obj, const tensor_info& info) noexcept {
    return detail::own_object(obj.release().ptr(), true, info);
}

}  // namespace tenon::py
