// src/tensor/ranges.hpp: questions about what is in a range, by plain loops: those of the standard's ranges
// take the compiler longer than all that is asked.
#pragma once

#include <tenon/tensor/shape.hpp>
#include "../standard.hpp"

namespace tenon {

/// Whether `fn` is true of any.
template <class Range, class Fn>
[[nodiscard]] constexpr bool is_any(const Range& all, Fn&& fn) {
    for (const auto& each : all)
        if (fn(each)) return true;
    return false;
}

using detail::is_same;

/// A shape has an axis without elements.
[[nodiscard]] inline bool has_zero(extents shape) noexcept {
    for (const std::int64_t extent : shape)
        if (extent == 0) return true;
    return false;
}

}  // namespace tenon
