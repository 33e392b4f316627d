// src/tensor/request.cpp: what a tensor lacks of what was asked, in an error each.
#include <tenon/tensor/request.hpp>
#include "ranges.hpp"

namespace tenon::detail {

TENON_INLINE error dtype_unmet(dtype got, dtype wanted) noexcept {
    return refused("dtype", "another element type is needed", got, wanted);
}
TENON_INLINE result<void> check_types(const tensor_ref& t, std::span<const dtype> types,
                                      bool is_read_here) noexcept {
    const dtype got = t.dtype();
    if (!is_any(types, [&](dtype one) { return one == got; }))
        return not_taken("what is needed is", types.data(), types.size(), got);
    if (is_read_here && !t.empty() && !t.is_aligned_to(got.alignment()))
        return alignment_unmet(t, got.alignment());
    return {};
}
TENON_INLINE error device_unmet(device got, device wanted) noexcept {
    if (wanted.type != got.type)
        return refused("device", "another kind of device is needed", got.type, wanted.type);
    return refused("device", "another device of this kind is needed", got.id, wanted.id);
}
TENON_INLINE error alignment_unmet(const tensor_ref& t, std::uint32_t wanted) noexcept {
    return refused("data", "the address is not aligned as needed (bytes past alignment)",
                   static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(t.data()) % wanted), 0)
        .with_advice("pass an aligned copy, or take the tensor untyped and copy its bytes");
}
TENON_INLINE error space_unmet(device got, memory_space wanted) noexcept {
    if (wanted == memory_space::accelerator)
        return refused("device", "accelerator memory is needed and this is host memory", got.type);
    return refused("device", "host memory is needed and this device's cannot be read there", got.type)
        .with_advice("move it to the CPU first");
}
TENON_INLINE error order_unmet(memory_order wanted) noexcept {
    if (wanted != memory_order::f) {
        return refused("strides", wanted == memory_order::c
                                      ? "row-major contiguous memory is needed"
                                      : "contiguous memory is needed, row-major or column-major")
            .with_advice("make it contiguous first (numpy.ascontiguousarray, tensor.contiguous)");
    }
    return refused("strides", "column-major contiguous memory is needed")
        .with_advice("make it so first (numpy.asfortranarray)");
}
TENON_INLINE error writable_unmet(bool read_only) noexcept {
    if (read_only) {
        return refused("flags", "a writable tensor is needed and this one is read-only")
            .with_advice("pass a writable array or a copy, or take it for reading only");
    }
    return refused("strides", "a writable tensor is needed and elements of this one may share memory")
        .with_advice("pass a copy");
}

TENON_INLINE result<void> check_shape(extents got, extents wanted) noexcept {
    if (got.size() != wanted.size()) {
        return refused("ndim", "another number of axes is needed", static_cast<std::int64_t>(got.size()),
                       static_cast<std::int64_t>(wanted.size()));
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (wanted[i] != any && wanted[i] != got[i])
            return refused("shape", "another extent is needed", got[i], wanted[i]).at_axis(i);
    }
    return {};
}

}  // namespace tenon::detail
