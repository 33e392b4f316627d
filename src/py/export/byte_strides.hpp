// src/py/export/byte_strides.hpp: a tensor as the protocols want it that count steps in bytes.
#pragma once

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

}  // namespace tenon::py
