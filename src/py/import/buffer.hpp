// src/py/import/buffer.hpp: the rung for the buffer protocol; the buffer is held for as long as the tensor.
// And what it shares with the array interfaces: holding a buffer, byte strides, format faults.
#pragma once

#include "attempt.hpp"

namespace tenon::py {

[[nodiscard]] inline error format_error(const char* field, format_fault fault) noexcept {
    if (fault == format_fault::byte_swapped)
        return refused(field, "the elements are not in this machine's byte order")
            .with_advice("convert it first (numpy: a.astype(a.dtype.newbyteorder('=')))");
    if (fault == format_fault::size_mismatch)
        return malformed(field, "the element size is not the one this format has");
    return refused(field, "not an element type DLPack can express")
        .with_advice(
            "structures, strings, pointers, times and long double have no DLPack type: hand over one "
            "field, or convert to numbers first");
}

/// Every element these protocols can name has a power of two bytes: steps are shifted, not divided.
[[nodiscard]] inline int step_shift(std::int64_t itemsize) noexcept {
    return std::countr_zero(static_cast<std::uint64_t>(itemsize));
}

/// Refuses a step in bytes that is not a whole number of elements. It does no harm where it is never taken,
/// along an axis of one element or in an empty array.
template <class Int>
[[nodiscard]] result<void> check_steps(extents shape, const Int* bytes, std::int64_t itemsize) noexcept {
    if (has_zero(shape)) return {};
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] <= 1 || (bytes[i] & (itemsize - 1)) == 0) continue;
        return refused("strides", "the step in bytes is not a multiple of the element size", bytes[i],
                       itemsize)
            .at_axis(i)
            .with_advice("make a contiguous copy");
    }
    return {};
}

/// Gets a buffer, which keeps `out` alive: in `out` itself for the length of a call, else on the heap.
[[nodiscard]] inline outcome hold_buffer(PyObject* obj, int request, interpreter& here, acquired& out,
                                         Py_buffer*& held) noexcept {
    held = out.owning ? static_cast<Py_buffer*>(PyMem_Malloc(sizeof(Py_buffer))) : &out.buffer;
    if (held == nullptr) {
        PyErr_NoMemory();
        return outcome::raised;
    }
    *held = Py_buffer{};
    if (call::get_buffer(obj, held, request) != 0) {
        if (out.owning) PyMem_Free(held);
        if (PyErr_Occurred() != nullptr) return outcome::raised;
        return refused("buffer", "the exporter failed without an exception");
    }
    out.owner = keep_alive(held, out.owning ? detail::release_buffer : detail::release_buffer_in_place, &here,
                           owner_kind::buffer);
    if (PyErr_Occurred() == nullptr) return outcome::taken;
    out.owner.reset();
    return outcome::raised;
}

}  // namespace tenon::py

namespace tenon::py::buffer {

inline void probe(PyTypeObject* type, type_plan& plan) noexcept {
    plan.has_buffer = type->tp_as_buffer != nullptr && type->tp_as_buffer->bf_getbuffer != nullptr &&
                      PyType_IsSubtype(type, &PyType_Type) == 0;  // classes are no arrays
    // NumPy's single times give their bytes as numbers of one byte each. Its array interface tells.
    const std::string_view name = type->tp_name != nullptr ? type->tp_name : "";
    if (name == "numpy.datetime64" || name == "numpy.timedelta64") plan.has_buffer = false;
}

/// Turns a filled Py_buffer into a checked tensor. Every field is the exporter's word and is looked at.
[[nodiscard]] inline outcome read(const Py_buffer& b, acquired& out) noexcept {
    if (b.ndim < 0) return malformed("ndim", "the number of axes is negative", b.ndim);
    if (b.ndim > max_rank) return refused("ndim", "too many axes", b.ndim, max_rank);
    if (b.itemsize <= 0) return malformed("itemsize", "it is not positive", b.itemsize);
    if (b.len < 0) return malformed("len", "it is negative", b.len);

    if (b.format != nullptr && tenon::detail::is_implausible(b.format))
        return malformed("format", "the pointer cannot be a string");
    const auto parsed = dtype_from_buffer_format(b.format != nullptr ? std::string_view(b.format) : "B",
                                                 static_cast<std::size_t>(b.itemsize));
    if (parsed.fault != format_fault::none) return format_error("format", parsed.fault);

    const auto n = static_cast<std::size_t>(b.ndim);
    for (const Py_ssize_t* array : {b.shape, b.strides, b.suboffsets}) {
        if (n != 0 && array != nullptr && tenon::detail::is_implausible(array))
            return malformed("shape", "a pointer to shape, strides or suboffsets cannot be an array");
    }
    if (b.shape == nullptr && n > 1) return malformed("shape", "the pointer is null although there are axes");
    for (std::size_t i = 0; b.suboffsets != nullptr && i < n; ++i) {
        if (b.suboffsets[i] >= 0) {
            return refused("suboffsets", "the data is behind pointers, which a tensor cannot express")
                .at_axis(i)
                .with_advice("copy it into one block first (memoryview(obj).tobytes())");
        }
    }
    const abi::dl_tensor t = without_axes(b.buf, b.ndim, parsed.type);
    const std::uint64_t flags = b.readonly != 0 ? abi::flag::read_only : 0;
    const auto extent = [&](std::size_t i) {
        return static_cast<std::int64_t>(b.shape != nullptr ? b.shape[i] : b.len / b.itemsize);
    };
    if (b.strides != nullptr) {
        const int shift = step_shift(b.itemsize);
        auto ok = out.admit_axes({t, flags}, [&](std::size_t i) {
            return tenon::detail::raw_axis{extent(i), b.strides[i] >> shift};
        });
        if (ok) ok = check_steps(out.shape(), b.strides, b.itemsize);
        if (!ok) return ok;
    } else {
        for (std::size_t i = 0; i < n; ++i) out.storage[i] = extent(i);
        fill_row_major({out.storage, n}, out.storage + n);
        if (auto ok = out.admit_stored({t, flags}); !ok) return ok;
    }
    if (out.nbytes() != b.len)
        return malformed("len", "it is not the size of the elements that shape and itemsize say", b.len);
    return outcome::taken;
}

/// Asks for the buffer, read-only or not as the exporter has it, and keeps it until the tensor goes: a
/// bytearray or mmap cannot be resized or closed meanwhile.
[[nodiscard]] inline outcome take(attempt& a) noexcept {
    if (!a.plan.has_buffer) return outcome::absent;
    Py_buffer* held = nullptr;
    outcome got = hold_buffer(a.obj, PyBUF_FULL_RO, a.here, a.out, held);
    if (got != outcome::taken) return got;
    got = read(*held, a.out);
    if (got == outcome::refused) return a.give_up(got.why());
    if (a.plan.immutable) a.out.mark_read_only();
    return got;
}

}  // namespace tenon::py::buffer
