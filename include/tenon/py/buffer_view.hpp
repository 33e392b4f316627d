// tenon/py/buffer_view.hpp: what the buffer protocol and the array interfaces share: byte strides and format faults.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <tenon/core/dtype_names.hpp>
#include <tenon/core/error.hpp>
#include <tenon/core/shape.hpp>
#include <tenon/py/python.hpp>

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
                .with_advice("structures, strings, pointers, times and long double have no DLPack type");
    }
}

/// Byte steps to element steps. A step that is not a whole number of elements cannot be expressed, except where
/// it is never taken: along an axis of one element, or in an empty array.
template <class Int>
[[nodiscard]] result<void> byte_strides_to_elements(extents shape, const Int* bytes, std::int64_t itemsize,
                                                    std::int64_t* elements) noexcept {
    const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const auto step = static_cast<std::int64_t>(bytes[i]);
        if (step % itemsize != 0 && shape[i] > 1 && !empty) {
            return refused("strides", "the step in bytes is not a multiple of the element size", step, itemsize)
                .at_axis(static_cast<std::int32_t>(i))
                .with_advice("make a contiguous copy");
        }
        elements[i] = step / itemsize;
    }
    return {};
}

}  // namespace tenon::py
