// tenon/tensor/request.hpp: what a caller asks of a tensor (type, shape, device, order, alignment,
// writability), and the check.
#pragma once

#include <cstdint>
#include <optional>

#include <tenon/detail/config.hpp>
#include <tenon/tensor/tensor_ref.hpp>
#include <tenon/value/error.hpp>

namespace tenon {

enum class memory_order : std::uint8_t { any, c, f };
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
};

namespace detail {

// Out of line, so that a check that is met stays small.
TENON_COLD inline error dtype_unmet(dtype got, dtype wanted) noexcept {
    if (wanted.code != got.code)
        return refused("dtype", "another kind of element is needed (type codes)", got.code, wanted.code);
    if (wanted.bits != got.bits)
        return refused("dtype", "another size of element is needed (bits)", got.bits, wanted.bits);
    return refused("dtype", "another number of lanes is needed", got.lanes, wanted.lanes);
}
TENON_COLD inline error device_unmet(device got, device wanted) noexcept {
    if (wanted.type != got.type)
        return refused("device", "another kind of device is needed", got.type, wanted.type);
    return refused("device", "another device of this kind is needed", got.id, wanted.id);
}
TENON_COLD inline error kind_unmet(device got, std::int32_t wanted) noexcept {
    return refused("device", "another kind of device is needed", got.type, wanted);
}
TENON_COLD inline error shape_unmet(extents got, extents wanted) noexcept {
    if (got.size() != wanted.size()) {
        return refused("ndim", "another number of axes is needed", static_cast<std::int64_t>(got.size()),
                       static_cast<std::int64_t>(wanted.size()));
    }
    std::size_t axis = 0;
    while (wanted[axis] == any || wanted[axis] == got[axis]) ++axis;
    return refused("shape", "another extent is needed", got[axis], wanted[axis])
        .at_axis(static_cast<std::int32_t>(axis));
}
TENON_COLD inline error alignment_unmet(const tensor_ref& t, std::uint32_t wanted) noexcept {
    return refused("data", "the address is not aligned as needed (bytes past alignment)",
                   static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(t.data()) % wanted), 0)
        .with_advice("pass an aligned copy");
}
TENON_COLD inline error space_unmet(device got, memory_space wanted) noexcept {
    if (wanted == memory_space::accelerator)
        return refused("device", "accelerator memory is needed and this is host memory", got.type);
    return refused("device", "host memory is needed and this device's cannot be read there", got.type)
        .with_advice("move it to the CPU first");
}
TENON_COLD inline error order_unmet(memory_order wanted) noexcept {
    if (wanted == memory_order::c) {
        return refused("strides", "row-major contiguous memory is needed")
            .with_advice("make it contiguous first (numpy.ascontiguousarray, tensor.contiguous)");
    }
    return refused("strides", "column-major contiguous memory is needed")
        .with_advice("make it so first (numpy.asfortranarray)");
}
TENON_COLD inline error writable_unmet(bool read_only) noexcept {
    if (read_only) {
        return refused("flags", "a writable tensor is needed and this one is read-only")
            .with_advice("pass a writable array or a copy, or take it for reading only");
    }
    return refused("strides", "a writable tensor is needed and elements of this one may share memory")
        .with_advice("pass a copy");
}

[[nodiscard]] inline bool fits_shape(extents got, extents wanted) noexcept {
    if (got.size() != wanted.size()) return false;
    for (std::size_t i = 0; i < wanted.size(); ++i)
        if (wanted[i] != any && wanted[i] != got[i]) return false;
    return true;
}

}  // namespace detail

/// The first constraint `t` does not meet, or success.
TENON_HOT [[nodiscard]] inline result<void> check(const tensor_ref& t, const request& r) noexcept {
    if (r.type && *r.type != t.dtype()) [[unlikely]]
        return detail::dtype_unmet(t.dtype(), *r.type);
    if (r.rank >= 0 && r.rank != t.ndim()) [[unlikely]]
        return refused("ndim", "another number of axes is needed", t.ndim(), r.rank);
    if (!r.shape.empty() && !detail::fits_shape(t.shape(), r.shape)) [[unlikely]]
        return detail::shape_unmet(t.shape(), r.shape);
    if (r.kind != -1 && !t.device().serves(r.kind)) [[unlikely]]
        return detail::kind_unmet(t.device(), r.kind);
    if (r.device && *r.device != t.device()) [[unlikely]]
        return detail::device_unmet(t.device(), *r.device);
    if ((r.space == memory_space::host && !t.device().is_host_accessible()) ||
        (r.space == memory_space::accelerator && t.device().is_cpu())) [[unlikely]]
        return detail::space_unmet(t.device(), r.space);
    if ((r.order == memory_order::c && !t.is_c_contiguous()) ||
        (r.order == memory_order::f && !t.is_f_contiguous())) [[unlikely]]
        return detail::order_unmet(r.order);
    if (r.writable && (t.is_read_only() || may_overlap(t.shape(), t.strides()))) [[unlikely]]
        return detail::writable_unmet(t.is_read_only());
    if (r.alignment > 1 && !t.empty() && !t.is_aligned_to(r.alignment)) [[unlikely]]
        return detail::alignment_unmet(t, r.alignment);
    return {};
}

}  // namespace tenon
