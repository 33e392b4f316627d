// tenon/core/request.hpp: what a caller asks of a tensor (type, rank, device, order, writability), and the check.
#pragma once

#include <cstdint>
#include <optional>

#include <tenon/core/error.hpp>
#include <tenon/core/tensor_ref.hpp>

namespace tenon {

enum class memory_order : std::uint8_t { any, c, f };
enum class memory_space : std::uint8_t { any, host, accelerator };

/// Constraints on an argument. A default one takes any tensor for reading.
struct request {
    bool writable = false;
    memory_order order = memory_order::any;
    memory_space space = memory_space::any;
    std::int32_t rank = -1;                   ///< -1: any
    std::optional<tenon::dtype> type = {};    ///< nullopt: any
    std::optional<tenon::device> device = {};  ///< nullopt: any
};

/// The first constraint `t` does not meet, or success.
[[nodiscard]] inline result<void> check(const tensor_ref& t, const request& r) noexcept {
    if (r.writable && t.is_read_only()) {
        return refused("flags", "a writable tensor is needed and this one is read-only")
            .with_advice("pass a writable array or a copy, or take it for reading only");
    }
    if (r.writable && may_overlap(t.shape(), t.strides())) {
        return refused("strides", "a writable tensor is needed and elements of this one may share memory")
            .with_advice("pass a copy");
    }
    if (r.type && *r.type != t.dtype()) {
        if (r.type->code != t.dtype().code)
            return refused("dtype", "another kind of element is needed (type codes)", t.dtype().code, r.type->code);
        if (r.type->bits != t.dtype().bits)
            return refused("dtype", "another size of element is needed (bits)", t.dtype().bits, r.type->bits);
        return refused("dtype", "another number of lanes is needed", t.dtype().lanes, r.type->lanes);
    }
    if (r.rank >= 0 && r.rank != t.ndim())
        return refused("ndim", "another number of axes is needed", t.ndim(), r.rank);
    if (r.device && *r.device != t.device()) {
        if (r.device->type != t.device().type)
            return refused("device", "another kind of device is needed", t.device().type, r.device->type);
        return refused("device", "another device of this kind is needed", t.device().id, r.device->id);
    }
    if (r.space == memory_space::host && !t.device().is_host_accessible()) {
        return refused("device", "host memory is needed and this device's cannot be read there", t.device().type)
            .with_advice("move it to the CPU first");
    }
    if (r.space == memory_space::accelerator && t.device().is_host_accessible())
        return refused("device", "accelerator memory is needed and this is host memory", t.device().type);
    if (r.order == memory_order::c && !t.is_c_contiguous()) {
        return refused("strides", "row-major contiguous memory is needed")
            .with_advice("make it contiguous first (numpy.ascontiguousarray, tensor.contiguous)");
    }
    if (r.order == memory_order::f && !t.is_f_contiguous()) {
        return refused("strides", "column-major contiguous memory is needed")
            .with_advice("make it so first (numpy.asfortranarray)");
    }
    return {};
}

}  // namespace tenon
