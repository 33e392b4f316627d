// src/py/export/array_interface.hpp: what `__array_interface__` and `__cuda_array_interface__` of a
// producer answer.
#pragma once

#include "../import/all.hpp"
#include "byte_strides.hpp"

namespace tenon::py {

namespace detail {

/// A tuple of what `number(i)` says of each axis; null with an exception set.
template <class Number>
[[nodiscard]] PyObject* tuple_of_axes(std::size_t rank, Number&& number) noexcept {
    ref out = ref::take(PyTuple_New(static_cast<Py_ssize_t>(rank)));
    for (std::size_t i = 0; out && i < rank; ++i) {
        PyObject* const item = PyLong_FromLongLong(number(i));
        if (item == nullptr) return nullptr;
        PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), item);
    }
    return out.release();
}

/// "There is no such attribute", so that `hasattr` and `getattr` with a default say the same.
TENON_COLD inline PyObject* no_attribute(const char* name, const char* reason) noexcept {
    PyErr_Format(PyExc_AttributeError, "tenon: no %s: %s", name, reason);
    return nullptr;
}

/// The fields both interfaces have.
[[nodiscard]] inline ref interface_of(const tensor_ref& t, const dtype_entry& known,
                                      PyObject* address) noexcept {
    const char order = known.type.itemsize() == 1 ? '|' : tenon::detail::little_endian ? '<' : '>';
    const auto rank = static_cast<std::size_t>(t.ndim());
    const ref shape = ref::take(tuple_of_axes(rank, [&](std::size_t i) { return t.shape(i); }));
    const ref strides =
        t.is_c_contiguous()
            ? ref::borrow(Py_None)
            : ref::take(tuple_of_axes(rank, [&](std::size_t i) { return byte_stride(t, i); }));
    // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): the texts of the table are literals
    const ref typestr = ref::take(PyUnicode_FromFormat("%c%s", order, known.typestr.data()));
    if (!shape || !strides || !typestr || address == nullptr) return {};
    return ref::take(Py_BuildValue("{s:i,s:O,s:O,s:O,s:(OO)}", "version", 3, "shape", shape.get(), "typestr",
                                   typestr.get(), "strides", strides.get(), "data", address,
                                   t.is_read_only() ? Py_True : Py_False));
}

}  // namespace detail

/// For host memory of any kind, which a device has finished with. `stays_put` as for `__dlpack__`.
[[nodiscard]] inline PyObject* answer_array_interface(const tensor_ref& t, bool stays_put) noexcept {
    const dtype_entry* const known = find_dtype(t.dtype());
    if (!t.device().is_host_accessible())
        return detail::no_attribute("__array_interface__", "the memory is not the host's");
    if (known == nullptr || known->typestr.empty())
        return detail::no_attribute("__array_interface__", "NumPy has no typestr for the element type");
    if (!detail::finish_device_work(t.device(), stays_put)) return nullptr;
    const ref address = ref::take(PyLong_FromVoidPtr(address_of(t)));
    return detail::interface_of(t, *known, address.get()).release();
}

/// For CUDA and managed memory, with the stream on which it is ready. Where only an event tells, the default
/// stream is made to wait for it: the stream it was recorded on may be gone.
[[nodiscard]] inline PyObject* answer_cuda_array_interface(const tensor_ref& t, bool stays_put,
                                                           const gpu::ready_event& ready) noexcept {
    const dtype_entry* const known = find_dtype(t.dtype());
    if (!t.device().is_cuda() && t.device().type != abi::device_code::cuda_managed)
        return detail::no_attribute("__cuda_array_interface__", "the memory is not CUDA's");
    if (known == nullptr || known->typestr.empty())
        return detail::no_attribute("__cuda_array_interface__", "it has no typestr for the element type");
    if (ready && !detail::succeeded(detail::without_gil_if(
                     stays_put, [&] { return gpu::order_after(t.device(), ready, nullptr); })))
        return nullptr;
    // Nothing at all is at address zero here.
    const ref address = ref::take(PyLong_FromVoidPtr(t.empty() ? nullptr : t.data()));
    ref interface = detail::interface_of(t, *known, address.get());
    // For captured work nobody can wait.
    void* const number = ready ? gpu::default_stream(t.device()) : t.stream();
    const ref stream = !interface            ? ref()
                       : ready.is_captured() ? ref::borrow(Py_None)
                                             : ref::take(PyLong_FromVoidPtr(number));
    if (!stream || call::set_dict_item(interface.get(), "stream", stream.get()) != 0) return nullptr;
    return interface.release();
}

}  // namespace tenon::py
