// src/py/import/buffer_view.hpp: what the buffer protocol and the array interfaces share: holding a buffer,
// byte strides, format faults.
#pragma once

#include "../library/all.hpp"
#include "outcome.hpp"

namespace tenon::py {

[[nodiscard]] inline error format_error(const char* field, format_fault fault) noexcept {
    switch (fault) {
        case format_fault::byte_swapped:
            return refused(field, "the elements are not in this machine's byte order")
                .with_advice("convert it first (numpy: a.astype(a.dtype.newbyteorder('=')))");
        case format_fault::size_mismatch:
            return malformed(field, "the element size is not the one this format has");
        default:
            return refused(field, "not an element type DLPack can express")
                .with_advice(
                    "structures, strings, pointers, times and long double have no DLPack type: hand over one "
                    "field, or convert to numbers first");
    }
}

/// Steps in bytes as steps in elements. Every element these protocols can name has a power of two bytes, so
/// no division is needed. A step that is not a whole number of elements cannot be expressed; it does no harm
/// where it is never taken, along an axis of one element or in an empty array.
class element_steps {
public:
    explicit element_steps(std::int64_t itemsize) noexcept
        : fraction_(itemsize - 1), shift_(std::countr_zero(static_cast<std::uint64_t>(itemsize))) {}
    [[nodiscard]] bool are_whole(std::int64_t bytes) const noexcept { return (bytes & fraction_) == 0; }
    [[nodiscard]] std::int64_t count(std::int64_t bytes) const noexcept { return bytes >> shift_; }

private:
    std::int64_t fraction_;
    int shift_;
};

/// Says which step, of those that are taken, is not a whole number of elements.
template <class Int>
TENON_COLD [[nodiscard]] error broken_step(extents shape, const Int* strides,
                                           std::int64_t itemsize) noexcept {
    const element_steps steps(itemsize);
    error e = refused("strides", "the step in bytes is not a multiple of the element size")
                  .with_advice("make a contiguous copy");
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] <= 1 || steps.are_whole(strides[i])) continue;
        return refused(e.field, e.problem, strides[i], itemsize)
            .at_axis(static_cast<std::int32_t>(i))
            .with_advice(e.advice);
    }
    return e;
}

/// Gets a buffer and makes it what keeps `out` alive: in `out` itself for the length of a call, else on the
/// heap.
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
