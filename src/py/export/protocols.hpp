// src/py/export/protocols.hpp: what the protocols have in common: what a tensor says of itself, as Python has
// it, and the tables by which CPython and DLPack reach the objects of a class.
#pragma once

#include <tenon/py/export.hpp>
#include <tenon/py/producer.hpp>
#include "../import/all.hpp"

namespace tenon::py {

/// The step along an axis in bytes. One that is never taken may be anything, and need not fit: then it is
/// that of a single element.
[[nodiscard]] inline Py_ssize_t byte_stride(const tensor_ref& t, std::size_t axis) noexcept {
    std::int64_t bytes = 0;
    if (tenon::detail::mul_overflows(t.stride(axis), t.itemsize(), bytes)) bytes = t.itemsize();
    return static_cast<Py_ssize_t>(bytes);
}

/// Where the elements are; nothing at all lies somewhere, too, because consumers take null for a fault.
[[nodiscard]] inline void* address_of(const tensor_ref& t) noexcept {
    alignas(64) static char nothing[64] = {};
    return t.empty() ? nothing : t.data();
}

/// The number as Python has it: a bool, an int, a float or a complex.
[[nodiscard]] inline PyObject* to_python(const number& n) noexcept {
    using kind = number::kind;
    if (n.is == kind::boolean) return PyBool_FromLong(static_cast<long>(n.integer));
    if (n.is == kind::integer) return PyLong_FromLongLong(n.integer);
    if (n.is == kind::natural) return PyLong_FromUnsignedLongLong(static_cast<unsigned long long>(n.integer));
    return n.is == kind::real ? PyFloat_FromDouble(n.real) : PyComplex_FromDoubles(n.real, n.imaginary);
}

namespace detail {

/// Raises, and says so, when there is no tensor: one that was never given memory, or was moved from. It has
/// no axes, and not the one element that such a tensor has.
[[nodiscard]] inline bool refuse_nothing(const tensor_ref& t) noexcept {
    if (t.ndim() != 0 || !t.empty()) [[likely]]
        return false;
    raise(refused("", "the tensor is empty: nothing was put into it, or it was moved away"), "tenon: ");
    return true;
}

/// A new capsule over memory that `owner` keeps alive, `owner` moved into it; null with an exception set, and
/// `owner` left as it was, on failure.
[[nodiscard]] TENON_API PyObject* new_capsule(const tensor_ref& t, keep_alive& owner, capsule_kind kind,
                                              export_view how) noexcept;

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
[[nodiscard]] inline PyObject* tuple_of(extents values) noexcept {
    return tuple_of_axes(values.size(), [&](std::size_t i) { return values[i]; });
}
[[nodiscard]] inline PyObject* text_of(std::string_view text) noexcept {
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

/// When the memory is ready, where its stream does not tell.
[[nodiscard]] TENON_PRIVATE inline const gpu::ready_event& ready_of(answer::source s,
                                                                    PyObject* self) noexcept {
    static const gpu::ready_event none;
    return s.ready != nullptr ? s.ready(self) : none;
}

/// Makes a stream wait for the memory; false with an exception set when the driver fails. For captured work
/// nobody can wait.
[[nodiscard]] inline bool make_wait(answer::source s, const tensor_ref& t, PyObject* self,
                                    void* later) noexcept {
    const device where = t.device();
    const gpu::ready_event& ready = ready_of(s, self);
    if (ready.is_captured() ||
        (!ready && gpu::named_stream(where, t.stream()) == gpu::named_stream(where, later)))
        return true;
    return succeeded(without_gil_if(s.lends, [&] {
        return ready ? gpu::order_after(where, ready, later) : gpu::order(where, t.stream(), later);
    }));
}

/// Adds to a type's dictionary, immutable types included; false with an exception set.
[[nodiscard]] inline bool add_to_type(PyTypeObject* type, const char* name, ref value) noexcept {
    if (!value) return false;
#if PY_VERSION_HEX >= 0x030C0000
    const ref dict = ref::take(PyType_GetDict(type));
#else
    const ref dict = ref::borrow(type->tp_dict);
#endif
    return dict && call::set_dict_item(dict.get(), name, value.get()) == 0;
}

// The functions of an exchange table of ours that are the same for every class.
using set_error_fn = void (*)(void* context, const char* kind, const char* message);
TENON_API int allocate_managed(abi::dl_tensor* prototype, abi::managed_tensor_versioned** out, void* context,
                               set_error_fn set_error) noexcept;
TENON_API int table_to_object(abi::managed_tensor_versioned* managed, void** out) noexcept;
TENON_API int default_stream(std::int32_t, std::int32_t, void** out) noexcept;

/// Gives a class every protocol, and the exchange table by the name it has in DLPack 1.3; the tables are the
/// class's for good. False with an exception set on failure.
[[nodiscard]] TENON_API bool add_protocols(PyTypeObject* type, producer_tables& tables) noexcept;

}  // namespace detail
}  // namespace tenon::py
