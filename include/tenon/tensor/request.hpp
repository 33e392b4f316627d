// tenon/tensor/request.hpp: what a caller asks of a tensor, and the check.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <tenon/tensor/tensor_ref.hpp>
#include <tenon/value/error.hpp>

namespace tenon {

/// Row-major, column-major, or one of the two, each without gaps.
enum class memory_order : std::uint8_t { any, c, f, c_or_f };
enum class memory_space : std::uint8_t { any, host, accelerator };

/// An extent that may be anything, in the `shape` of a request.
inline constexpr std::int64_t any = -1;

/// Constraints on an argument. A default one takes any tensor for reading.
struct request {
    std::optional<tenon::dtype> type = {};     ///< nullopt: any
    std::int32_t rank = -1;                    ///< -1: any
    std::optional<tenon::device> device = {};  ///< nullopt: any
    memory_space space = memory_space::any;
    memory_order order = memory_order::any;
    bool writable = false;
    std::int32_t kind = -1;       ///< the kind of device that must be able to use it, any of its ids; -1: any
    extents shape = {};           ///< an extent or `any` for each axis; empty: any
    std::uint32_t alignment = 1;  ///< of the first element, a power of two
    /// Where `type` says nothing: any of these, aligned as the host needs it if that is to read them; empty:
    /// any. They must outlive the errors, as static ones do.
    std::span<const dtype> types = {};
};

namespace detail {

// Out of line, so that a check that is met stays small.
TENON_API error dtype_unmet(dtype got, dtype wanted) noexcept;
TENON_API result<void> check_types(const tensor_ref& t, std::span<const dtype> types,
                                   bool is_read_here) noexcept;
TENON_API error device_unmet(device got, device wanted) noexcept;
TENON_API error alignment_unmet(const tensor_ref& t, std::uint32_t wanted) noexcept;
TENON_API error space_unmet(device got, memory_space wanted) noexcept;
TENON_API error order_unmet(memory_order wanted) noexcept;
TENON_API error writable_unmet(bool read_only) noexcept;
TENON_API result<void> check_shape(extents got, extents wanted) noexcept;

/// Without gaps, and in the order.
[[nodiscard]] inline bool is_in_order(const tensor_ref& t, memory_order order) noexcept {
    return (order != memory_order::f && t.is_c_contiguous()) ||
           (order != memory_order::c && t.is_f_contiguous());
}

}  // namespace detail

/// The first constraint `t` does not meet, or success.
TENON_HOT [[nodiscard]] inline result<void> check(const tensor_ref& t, const request& r) noexcept {
    if (r.type) {
        if (*r.type != t.dtype()) [[unlikely]]
            return detail::dtype_unmet(t.dtype(), *r.type);
    } else if (!r.types.empty()) {
        // By its parts: where the request itself is passed on, compilers no longer see what is in it.
        const bool is_read_here = r.space == memory_space::host || r.kind == abi::device_code::cpu;
        if (auto ok = detail::check_types(t, r.types, is_read_here); !ok) [[unlikely]]
            return ok;
    }
    if (r.rank >= 0 && r.rank != t.ndim()) [[unlikely]]
        return refused("ndim", "another number of axes is needed", t.ndim(), r.rank);
    if (!r.shape.empty())
        if (auto ok = detail::check_shape(t.shape(), r.shape); !ok) [[unlikely]]
            return ok;
    if (r.kind != -1 && !t.device().serves(r.kind)) [[unlikely]]
        return detail::device_unmet(t.device(), {r.kind, 0});
    if (r.device && *r.device != t.device()) [[unlikely]]
        return detail::device_unmet(t.device(), *r.device);
    if ((r.space == memory_space::host && !t.device().is_host_accessible()) ||
        (r.space == memory_space::accelerator && t.device().is_cpu())) [[unlikely]]
        return detail::space_unmet(t.device(), r.space);
    if (r.order != memory_order::any && !detail::is_in_order(t, r.order)) [[unlikely]]
        return detail::order_unmet(r.order);
    if (r.writable && (t.is_read_only() || may_overlap(t.shape(), t.strides()))) [[unlikely]]
        return detail::writable_unmet(t.is_read_only());
    if (r.alignment > 1 && !t.empty() && !t.is_aligned_to(r.alignment)) [[unlikely]]
        return detail::alignment_unmet(t, r.alignment);
    return {};
}

}  // namespace tenon
