// src/tensor/validate.cpp: the whole check of a description, for what the quick one in the header leaves.
#include <tenon/tensor/validate.hpp>
#include "../standard.hpp"

namespace tenon::detail {

TENON_INLINE error validator::arrays_unsound(const abi::dl_tensor& t) noexcept {
    if (t.ndim < 0) return malformed("ndim", "the number of axes is negative", t.ndim);
    if (t.ndim > max_rank) {
        return refused("ndim", "too many axes", t.ndim, max_rank)
            .with_advice("64 axes are the limit; reshape the array to fewer");
    }
    if (t.shape == nullptr) return malformed("shape", "the pointer is null although there are axes");
    if (is_implausible(t.shape)) return malformed("shape", "the pointer cannot be an array");
    return malformed("strides", "the pointer cannot be an array");
}

/// The bits of an element whose type code says them; 0 for all others.
[[nodiscard]] constexpr std::uint8_t fixed_width(std::uint8_t code) noexcept {
    namespace tc = abi::type_code;
    if (code >= tc::float8_e3m4 && code <= tc::float8_e8m0fnu) return 8;
    if (code == tc::float6_e2m3fn || code == tc::float6_e3m2fn) return 6;
    return code == tc::float4_e2m1fn ? 4 : 0;
}

/// An element type without a name here (a newer DLPack's, a vector) is carried, as so many bits that are
/// for others to interpret: only what contradicts itself is refused.
[[nodiscard]] inline result<void> check_unknown_dtype(dtype type) noexcept {
    if (type.bits == 0 || type.lanes == 0)
        return malformed("dtype", type.bits == 0 ? "an element has no bits" : "an element has no lanes", 0);
    const std::uint8_t width = fixed_width(type.code);
    if (width != 0 && type.bits != width)
        return malformed("dtype", "fp8, fp6 and fp4 elements have another number of bits", type.bits);
    return {};
}

/// Every element's address must be representable, and there must be an address to begin with.
[[nodiscard]] inline result<void> check_reach(const abi::dl_tensor& t, dtype type, device where, bool padded,
                                              std::int64_t size, element_span span) noexcept {
    if (t.data == nullptr) {
        return malformed("data", "the pointer is null although there are elements", size)
            .with_advice("a fake or freed tensor looks like this");
    }
    if (!byte_count(size, type, padded))
        return malformed("shape", "the number of bytes does not fit in 64 bits");
    std::int64_t low = 0;
    std::int64_t high = 0;
    std::int64_t end = 0;
    // Sub-byte elements are counted as whole bytes here: generous, and safe.
    if (mul_overflows(span.low, type.itemsize(), low) || mul_overflows(span.high, type.itemsize(), high) ||
        add_overflows(high, type.itemsize(), end))
        return malformed("strides", "an element lies further away than 64 bits can say");

    const std::uint64_t base = where.has_opaque_handle() ? 0 : reinterpret_cast<std::uintptr_t>(t.data);
    const std::uint64_t first = base + t.byte_offset;
    if (first < base) return malformed("byte_offset", "data + byte_offset wraps around the address space");
    const auto below = static_cast<std::uint64_t>(0) - static_cast<std::uint64_t>(low);
    if (below > first || first + static_cast<std::uint64_t>(end) < first)
        return malformed("strides", "an element lies outside the address space");
    return {};
}

TENON_INLINE result<void> validator::check_stored(const claim& said, const std::int64_t* storage,
                                                  tensor_ref& out) noexcept {
    const auto n = static_cast<std::size_t>(said.tensor.ndim);
    const dtype type{said.tensor.dtype};
    const device where{said.tensor.device};
    if (const std::uint64_t unknown = said.flags & ~abi::flag::all_known; unknown != 0)
        return refused_bits("flags", "there are flag bits that DLPack 1.3 does not define", unknown);
    if (!is_known(type)) {
        if (auto bad = check_unknown_dtype(type); !bad) return bad;
    }
    // A kind of device without a name here is carried, too: its memory is for others to reach.
    if (where.id < 0) return malformed("device", "the device id is negative", where.id);
    if (where.type <= 0) return malformed("device", "there is no such kind of device", where.type);

    const extents shape(storage, n);
    for (std::size_t i = 0; i < n; ++i) {
        if (shape[i] < 0) return malformed("shape", "the extent is negative", shape[i]).at_axis(i);
    }
    const auto size = element_count(shape);
    if (!size) return malformed("shape", "the number of elements does not fit in 64 bits");
    if (*size != 0) {
        const auto span = touched_span(shape, {storage + n, n});
        if (!span) return malformed("strides", "an element lies further away than 64 bits can say");
        const bool padded = (said.flags & abi::flag::subbyte_padded) != 0;
        if (auto bad = check_reach(said.tensor, type, where, padded, *size, *span); !bad) return bad;
    }
    fill(said, storage, *size, out);
    return {};
}

TENON_INLINE bool validator::is_low_end_near(const tensor_ref& t, std::int64_t itemsize) noexcept {
    std::uint64_t far = 0;
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < t.shape().size(); ++i) {
        const std::int64_t reach = one_less(t.shape(i)) * t.stride(i);
        const std::int64_t backwards = reach >> 63;  // all bits, or none
        far |= static_cast<std::uint64_t>(reach ^ backwards);
        below -= static_cast<std::uint64_t>(reach & backwards);
    }
    return (far >> 52U) == 0 &&
           below * static_cast<std::uint64_t>(itemsize) <= reinterpret_cast<std::uintptr_t>(t.base());
}

}  // namespace tenon::detail
