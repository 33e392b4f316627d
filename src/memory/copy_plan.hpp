// src/memory/copy_plan.hpp: how a copy walks a tensor, and how much of it is worth a thread.
#pragma once

#include <tenon/tensor/tensor_ref.hpp>
#include <tenon/value/error.hpp>
#include "../standard.hpp"

namespace tenon::detail {

/// Whether elements share bytes, of which only those in order can be copied.
[[nodiscard]] inline result<bool> is_packed(const tensor_ref& t) noexcept {
    const bool packed = t.dtype().is_subbyte() && !t.is_subbyte_padded();
    if (packed && !t.is_c_contiguous()) {
        return refused("strides", "packed sub-byte elements can only be copied when contiguous")
            .with_advice("make it contiguous first");
    }
    return packed;
}

/// The axes of a tensor as a copy sees them, the fastest first: those of one element left out, those that
/// follow on one another joined. What is left of a compact tensor is one axis.
struct joined_axes {
    struct axis {
        std::int64_t extent, stride;
    };

    explicit joined_axes(const tensor_ref& from) noexcept {
        for (std::size_t i = static_cast<std::size_t>(from.ndim()); i-- > 0;) {
            if (from.shape(i) == 1) continue;
            std::int64_t reach = 0;
            axis* const last = rank != 0 ? &axes[rank - 1] : nullptr;
            if (last != nullptr && !mul_overflows(last->stride, last->extent, reach) &&
                from.stride(i) == reach)
                last->extent *= from.shape(i);
            else
                axes[rank++] = {from.shape(i), from.stride(i)};
        }
    }

    std::size_t rank = 0;
    std::array<axis, static_cast<std::size_t>(max_rank) + 1> axes;  // with room for one more
};

/// Copies elements in row-major order, from wherever they lie.
class copy_plan : joined_axes {
public:
    explicit copy_plan(const tensor_ref& from) noexcept
        : joined_axes(from), source_(static_cast<const std::byte*>(from.data())), item_(from.itemsize()) {
        if (rank == 0) axes[rank++] = {1, 1};
    }

    /// Copies the elements number `first` to `end`, counted in row-major order, to their places in `target`.
    void copy(std::int64_t first, std::int64_t end, std::byte* target) const noexcept {
        if (item_ == 1) return copy_items<1>(first, end, target);
        if (item_ == 2) return copy_items<2>(first, end, target);
        if (item_ == 4) return copy_items<4>(first, end, target);
        if (item_ == 8) return copy_items<8>(first, end, target);
        if (item_ == 16) return copy_items<16>(first, end, target);
        return copy_items<0>(first, end, target);
    }

private:
    template <std::size_t Item>
    void copy_items(std::int64_t first, std::int64_t end, std::byte* target) const noexcept {
        const auto item = Item != 0 ? static_cast<std::int64_t>(Item) : item_;
        std::array<std::int64_t, static_cast<std::size_t>(max_rank)> index;
        std::int64_t offset = 0;  // of the row, in elements
        std::int64_t rest = first;
        for (std::size_t i = 0; i < rank; ++i) {
            index[i] = rest % axes[i].extent;
            rest /= axes[i].extent;
            if (i != 0) offset += index[i] * axes[i].stride;
        }
        target += first * item;
        std::int64_t column = index[0];
        while (first < end) {
            const std::int64_t count = std::min(axes[0].extent - column, end - first);
            copy_row<Item>(source_ + (offset + column * axes[0].stride) * item, target, count);
            target += count * item;
            first += count;
            column = 0;
            for (std::size_t i = 1; i < rank; ++i) {
                offset += axes[i].stride;
                if (++index[i] < axes[i].extent) break;
                offset -= axes[i].stride * axes[i].extent;
                index[i] = 0;
            }
        }
    }

    template <std::size_t Item>
    void copy_row(const std::byte* from, std::byte* to, std::int64_t count) const noexcept {
        const auto item = Item != 0 ? Item : static_cast<std::size_t>(item_);
        if (axes[0].stride == 1) {
            std::memcpy(to, from, static_cast<std::size_t>(count) * item);
            return;
        }
        const std::int64_t step = axes[0].stride * static_cast<std::int64_t>(item);
        for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * item_, from + i * step, item);
    }

    const std::byte* source_;
    std::int64_t item_;
};

// Below this a second thread costs more than it brings: starting one takes as long as copying nearly a
// megabyte, and memory that fits the caches is as quick by one.
inline constexpr std::int64_t bytes_per_thread = std::int64_t{4} << 20U;
// More do not make memory any faster.
TENON_PRIVATE inline constexpr std::int64_t max_copy_threads = 8;
// A copy of this much takes some tens of milliseconds, and then the watch is asked.
inline constexpr std::int64_t bytes_per_look = std::int64_t{64} << 20U;

}  // namespace tenon::detail
