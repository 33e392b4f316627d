// src/tensor/shape.cpp: whether elements of a layout may share memory.
#include <tenon/tensor/shape.hpp>
#include "ranges.hpp"

namespace tenon {

TENON_INLINE bool may_overlap(extents shape, extents strides) noexcept {
    struct axis {
        std::int64_t extent, step;
    };
    std::array<axis, static_cast<std::size_t>(max_rank)> axes;
    std::size_t n = 0;
    if (has_zero(shape)) return false;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] == 1) continue;
        if (strides[i] == 0 || strides[i] == std::numeric_limits<std::int64_t>::min() || n == axes.size())
            return true;
        // Sorted, the smallest step first.
        axis next{shape[i], strides[i] < 0 ? -strides[i] : strides[i]};
        for (std::size_t k = 0; k < n; ++k)
            if (next.step < axes[k].step) std::swap(next, axes[k]);
        axes[n++] = next;
    }
    std::int64_t covered = 0;  // the highest offset the faster axes reach
    for (std::size_t i = 0; i < n; ++i) {
        if (axes[i].step <= covered) return true;
        std::int64_t reach = 0;
        if (detail::mul_overflows(axes[i].extent - 1, axes[i].step, reach) ||
            detail::add_overflows(covered, reach, covered))
            return true;
    }
    return false;
}

}  // namespace tenon
