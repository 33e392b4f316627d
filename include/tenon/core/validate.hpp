// tenon/core/validate.hpp: the only way from an untrusted description to a `tensor_ref`: copy it, then check the copy.
#pragma once

#include <cstdint>
#include <cstring>

#include <tenon/core/device.hpp>
#include <tenon/core/dtype_names.hpp>
#include <tenon/core/error.hpp>
#include <tenon/core/shape.hpp>
#include <tenon/core/tensor_ref.hpp>

namespace tenon {

/// What a caller lets through that a careful reader would not.
struct import_policy {
    bool allow_unknown = false;  ///< dtype and device codes without a name here, carried opaquely
};

namespace detail {

/// A pointer into the first page cannot be an array: it is a small integer in the wrong field.
inline bool is_implausible(const void* p) noexcept { return reinterpret_cast<std::uintptr_t>(p) < 4096; }

/// Checks everything about a tensor that can be checked without touching its data.
///
/// Two steps, so that nothing is believed that the producer could change between check and use: `snapshot`
/// copies shape and strides into our storage (a single read of each), `finish` checks the copy.
struct validator {
    /// Rank, and whether the arrays can be there at all: what must hold before `snapshot` may read them.
    [[nodiscard]] static result<void> check_arrays(const abi::dl_tensor& t) noexcept {
        if (t.ndim == 0) return {};
        if (t.ndim < 0) return malformed("ndim", "the number of axes is negative", t.ndim);
        if (t.ndim > max_rank) {
            return refused("ndim", "too many axes", t.ndim, max_rank)
                .with_advice("64 axes are the limit; reshape the array to fewer");
        }
        if (t.shape == nullptr) return malformed("shape", "the pointer is null although there are axes");
        if (is_implausible(t.shape)) return malformed("shape", "the pointer cannot be an array");
        if (t.strides != nullptr && is_implausible(t.strides))
            return malformed("strides", "the pointer cannot be an array");
        return {};
    }

    /// Copies the arrays of `t` to `storage` (2 * ndim values); null strides become row-major ones.
    static void snapshot(const abi::dl_tensor& t, std::int64_t* storage) noexcept {
        const auto n = static_cast<std::size_t>(t.ndim);
        if (n == 0) return;
        std::memcpy(storage, t.shape, n * sizeof(std::int64_t));
        if (t.strides != nullptr)
            std::memcpy(storage + n, t.strides, n * sizeof(std::int64_t));
        else
            fill_row_major({storage, n}, storage + n);
    }

    /// Checks the scalars of `t` with the snapshot in `storage`, and describes both in `out`.
    [[nodiscard]] static result<void> finish(const abi::dl_tensor& t, std::uint64_t flags, abi::dl_version version,
                                             const std::int64_t* storage, import_policy policy,
                                             tensor_ref& out) noexcept {
        const auto n = static_cast<std::size_t>(t.ndim);
        const extents shape{storage, n};
        const extents strides{storage + n, n};
        const dtype type{t.dtype};
        const device where{t.device};

        if ((flags & ~abi::flag::all_known) != 0) [[unlikely]] {
            return refused_bits("flags", "there are flag bits that DLPack 1.3 does not define",
                                flags & ~abi::flag::all_known);
        }
        if (!is_known(type)) [[unlikely]]
            if (auto bad = check_unknown_dtype(type, policy); !bad) return bad;
        if (!where.is_cpu() || where.id < 0) [[unlikely]]
            if (auto bad = check_device(where, policy); !bad) return bad;

        std::int64_t size = 1;
        bool overflow = false;
        bool has_zero = false;
        for (std::size_t i = 0; i < n; ++i) {
            const std::int64_t e = shape[i];
            if (e < 0) [[unlikely]]
                return malformed("shape", "the extent is negative", e).at_axis(static_cast<std::int32_t>(i));
            has_zero |= e == 0;
            overflow |= mul_overflows(size, e, size);
        }
        if (has_zero) {
            size = 0;
        } else {
            if (overflow) [[unlikely]]
                return malformed("shape", "the number of elements does not fit in 64 bits");
            if (auto bad = check_reach(t, type, where, (flags & abi::flag::subbyte_padded) != 0, size, shape, strides);
                !bad) [[unlikely]]
                return bad;
        }

        out.base_ = t.data;
        out.byte_offset_ = t.byte_offset;
        out.shape_ = storage;
        out.strides_ = storage + n;
        out.size_ = size;
        out.flags_ = flags;
        out.ndim_ = t.ndim;
        out.dtype_ = type;
        out.device_ = where;
        out.version_ = version;
        return {};
    }

    /// Only ever takes rights away.
    static void add_flags(tensor_ref& t, std::uint64_t flags) noexcept { t.flags_ |= flags; }

private:
    [[nodiscard]] static result<void> check_unknown_dtype(dtype type, import_policy policy) noexcept {
        if (type.bits == 0 || type.lanes == 0)
            return malformed("dtype", type.bits == 0 ? "an element has no bits" : "an element has no lanes", 0);
        const bool fixed_width = type.code == abi::type_code::float6_e2m3fn ||
                                 type.code == abi::type_code::float6_e3m2fn ||
                                 type.code == abi::type_code::float4_e2m1fn;
        if (fixed_width && type.bits != (type.code == abi::type_code::float4_e2m1fn ? 4 : 6))
            return malformed("dtype", "fp4 and fp6 elements have another number of bits", type.bits);
        if (policy.allow_unknown) return {};
        if (type.code > abi::type_code::float4_e2m1fn)
            return refused("dtype", "the type code is not one of DLPack 1.3", type.code);
        if (type.lanes != 1) return refused("dtype", "vector elements are not supported", type.lanes, 1);
        return refused("dtype", "no such number of bits for this type code", type.bits);
    }

    [[nodiscard]] static result<void> check_device(device where, import_policy policy) noexcept {
        if (where.id < 0) return malformed("device", "the device id is negative", where.id);
        if (!policy.allow_unknown && !is_known(where))
            return refused("device", "the device kind is not one of DLPack 1.3", where.type);
        return {};
    }

    /// Every element's address must be representable, and there must be an address to begin with.
    [[nodiscard]] static result<void> check_reach(const abi::dl_tensor& t, dtype type, device where, bool padded,
                                                  std::int64_t size, extents shape, extents strides) noexcept {
        if (t.data == nullptr) [[unlikely]] {
            return malformed("data", "the pointer is null although there are elements", size)
                .with_advice("a fake or freed tensor looks like this");
        }
        if (!byte_count(size, type, padded)) [[unlikely]]
            return malformed("shape", "the number of bytes does not fit in 64 bits");
        const auto span = touched_span(shape, strides);
        std::int64_t low = 0;
        std::int64_t high = 0;
        std::int64_t end = 0;
        // Sub-byte elements are counted as whole bytes here: generous, and safe.
        if (!span || mul_overflows(span->low, type.itemsize(), low) || mul_overflows(span->high, type.itemsize(), high) ||
            add_overflows(high, type.itemsize(), end)) [[unlikely]]
            return malformed("strides", "an element lies further away than 64 bits can say");

        const std::uint64_t base = where.has_opaque_handle() ? 0 : reinterpret_cast<std::uintptr_t>(t.data);
        const std::uint64_t first = base + t.byte_offset;
        if (first < base) [[unlikely]]
            return malformed("byte_offset", "data + byte_offset wraps around the address space");
        const auto below = static_cast<std::uint64_t>(0) - static_cast<std::uint64_t>(low);
        if (below > first || first + static_cast<std::uint64_t>(end) < first) [[unlikely]]
            return malformed("strides", "an element lies outside the address space");
        return {};
    }
};

}  // namespace detail
}  // namespace tenon
