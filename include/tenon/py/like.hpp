// tenon/py/like.hpp: tensors go back as the caller's own library has them: torch in, torch out.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include <tenon/py/export.hpp>

namespace tenon::py {

/// The tensor as an array of the library that `like` comes from, over the same memory: PyTorch and every
/// other library with an exchange table by that, NumPy by its C functions, the others by their `from_dlpack`.
/// JAX and TensorFlow compute with memory that is aligned to 64 bytes (`allocate`, `aligned_allocator`): of
/// other memory JAX makes a copy, and so do we for TensorFlow.
/// What has memory to look at and no such library (bytes, a memoryview, an image of Pillow's, a column of
/// pandas or polars) gives an array of NumPy's, where that can be imported; all else (None, a number, a
/// `tenon.Tensor`) a producer object. `t` is taken in any case; null with an exception set on failure.
///
/// An array of NumPy's that was imported, or made by `empty_like`, comes back as the very same object.
[[nodiscard]] TENON_API PyObject* to_python(tensor&& t, PyObject* like) noexcept;
/// The same for memory just taken over: an error of `tensor::own` is raised.
[[nodiscard]] TENON_API PyObject* to_python(result<tensor> t, PyObject* like) noexcept;

/// The tensor as an array of the library of this name, over the same memory, where there is no array of the
/// caller's to go by: "numpy", "torch", "jax", "tensorflow", "paddle", "cupy", "tvm_ffi"; or as a
/// "memoryview". The library is imported if need be; ImportError says what to install. `t` is taken in any
/// case; null with an exception set on failure.
[[nodiscard]] TENON_API PyObject* to_library(tensor&& t, std::string_view library) noexcept;
[[nodiscard]] TENON_API PyObject* to_library(result<tensor> t, std::string_view library) noexcept;

namespace detail {

/// `owner` is taken in any case.
[[nodiscard]] TENON_API PyObject* array_over(const tensor_ref& t, keep_alive& owner, PyObject* like) noexcept;

}  // namespace detail

/// Memory of your own, as a description and what keeps it alive: for libraries with an exchange table the
/// quickest way. The memory is taken in any case.
template <deleter_or_keeper Owner>
TENON_HOT [[nodiscard]] inline PyObject* to_python(const tensor_info& info, Owner owner, PyObject* like) {
    keep_alive kept;
    if (!detail::keep(info, std::move(owner), kept)) return nullptr;
    const tenon::detail::described t(info);
    return t.checked() ? detail::array_over(t, kept, like)
                       : detail::refuse_described(t.checked().error(), kept);
}

/// A new, writable, uninitialised tensor of this shape and type where `like` is, which `to_python(t, like)`
/// gives back as an array of `like`'s library without copying. The memory comes from the library: its
/// exchange table's allocator (PyTorch's caching one), or its `empty`. Arrays of JAX and TensorFlow must not
/// be written to: for them, and for what belongs to no library, memory of our own does, on a GPU the
/// driver's. It is to be written to on its `stream()`. Nullopt with an exception set on failure. Whoever
/// knows where `like` is says so, and it is not asked again.
[[nodiscard]] TENON_API std::optional<tensor> empty_like(PyObject* like, const axes& shape, element_type type,
                                                         const tensor_ref* known = nullptr) noexcept;
template <class T>
[[nodiscard]] std::optional<tensor> empty_like(PyObject* like, const axes& shape) noexcept {
    return empty_like(like, shape, dtype_of<T>);
}
/// Of the shape and type that `like` itself has.
[[nodiscard]] TENON_API std::optional<tensor> empty_like(PyObject* like) noexcept;

}  // namespace tenon::py
