// tenon/tensor/validate.hpp: the only way from an untrusted description to a `tensor_ref`.
#pragma once

#include <cstdint>
#include <cstring>

#include <tenon/tensor/tensor_ref.hpp>
#include <tenon/value/dtype_names.hpp>
#include <tenon/value/error.hpp>

namespace tenon::detail {

/// A pointer into the first page cannot be an array: it is a small integer in the wrong field. Nor can one
/// beyond the addresses that a program can have (56 bits on x86-64); on other machines the upper bits may be
/// a tag.
inline bool is_implausible(const void* p) noexcept {
    constexpr std::uintptr_t lowest = 4096;
#if defined(__x86_64__) || defined(_M_X64)
    return reinterpret_cast<std::uintptr_t>(p) - lowest >= (std::uintptr_t{1} << 56U) - lowest;
#else
    return reinterpret_cast<std::uintptr_t>(p) < lowest;
#endif
}
/// The same of a function, which need not be there.
template <class Function>
[[nodiscard]] bool is_implausible_function(Function* f) noexcept {
    return f != nullptr && is_implausible(reinterpret_cast<const void*>(f));
}

/// What a producer says of its tensor: good for one check. A protocol without versions states 0.0.
struct claim {
    const abi::dl_tensor& tensor;
    std::uint64_t flags = 0;
    abi::dl_version version{0, 0};
};

/// One axis of a description, as it came.
struct raw_axis {
    std::int64_t extent;
    std::int64_t stride;
};

/// Checks everything about a tensor that can be checked without touching its data. Nothing is believed that
/// the producer could change between check and use: every value is read once, kept, and only the kept one
/// counts.
struct validator {
    /// Rank, and whether the arrays can be there at all: what must hold before they may be read.
    TENON_HOT [[nodiscard]] static result<void> check_arrays(const abi::dl_tensor& t) noexcept {
        if (t.ndim == 0) return {};
        if (t.ndim < 0 || t.ndim > max_rank || is_implausible(t.shape) ||
            (t.strides != nullptr && is_implausible(t.strides))) [[unlikely]]
            return arrays_unsound(t);
        return {};
    }

    /// Checks a description. Shape and strides are copied to `storage` (2 * ndim values), null strides as
    /// row-major ones.
    TENON_HOT [[nodiscard]] static result<void> check(const claim& said, std::int64_t* storage,
                                                      tensor_ref& out) noexcept {
        const abi::dl_tensor& t = said.tensor;
        if (auto ok = check_arrays(t); !ok) [[unlikely]]
            return ok;
        if (t.strides == nullptr && t.ndim != 0) return check_row_major_apart(said, storage, out);
        return check_axes(said, storage, out, [&](std::size_t i) TENON_HOT_LAMBDA {
            return raw_axis{read(t.shape, i), read(t.strides, i)};
        });
    }

    /// The same, out of line.
    [[nodiscard]] TENON_API static result<void> check_whole(const claim& said, std::int64_t* storage,
                                                            tensor_ref& out) noexcept;

    /// The same where there are no strides, and row-major ones are made.
    TENON_HOT [[nodiscard]] static result<void> check_row_major(const claim& said, std::int64_t* storage,
                                                                tensor_ref& out) noexcept {
        const auto n = static_cast<std::size_t>(said.tensor.ndim);
        const auto address = reinterpret_cast<std::uintptr_t>(said.tensor.data);
        std::int64_t size = 1;
        bool ordinary = is_ordinary_kind(said);
        for (std::size_t i = n; i-- > 0;) {
            storage[i] = read(said.tensor.shape, i);
            storage[n + i] = size;
            ordinary = ordinary && storage[i] > 0 && !mul_overflows(size, storage[i], size);
        }
        // No step leads further than to the last element, of which the size tells.
        if (ordinary && is_within(58, one_less(size)) && is_near(address, said.tensor.byte_offset))
            [[likely]] {
            fill(said, storage, size, out);
            return {};
        }
        fill_row_major({storage, n}, storage + n);
        return check_stored(said, storage, out);
    }

    /// The same for a description whose axes come from `axis(i)`. Its own shape and strides are not looked
    /// at. An axis may be asked for twice, and it is the last answer that is checked and kept.
    template <class Axis>
    TENON_HOT [[nodiscard]] static result<void> check_axes(const claim& said, std::int64_t* storage,
                                                           tensor_ref& out, Axis&& axis) noexcept {
        const bool ordinary_kind = is_ordinary_kind(said);
        if (is_ordinary_layout(said, dtype(said.tensor.dtype).itemsize(), storage, out, axis) &&
            ordinary_kind) [[likely]]
            return {};
        // All axes anew: what was read before is not used.
        const auto n = static_cast<std::size_t>(said.tensor.ndim);
        for (std::size_t i = 0; i < n; ++i) (void)store_axis(storage, n, i, axis);
        // In memory for this call alone: on the other path it stays in registers.
        const abi::dl_tensor whole = said.tensor;
        return check_stored({whole, said.flags, said.version}, storage, out);
    }

    /// Copies the axes to `storage` and, if the layout is an ordinary one, describes the tensor in `out`.
    /// Ordinary means: not empty, and neither the number of elements nor the furthest of them comes near what
    /// 64 bits can say. False says nothing else, and then some axes may not have been copied. Dtype, device
    /// and flags are taken as they come, with elements of at most 16 bytes.
    template <class Axis>
    TENON_HOT [[nodiscard]] static bool is_ordinary_layout(const claim& said, std::int64_t itemsize,
                                                           std::int64_t* storage, tensor_ref& out,
                                                           Axis&& axis) noexcept {
        const auto n = static_cast<std::size_t>(said.tensor.ndim);
        std::int64_t size = 1;
        std::int64_t far = 0;  // how far each axis reaches, or-ed
        fill(said, storage, size, out);
#if defined(__GNUC__)
        asm("" ::: "memory");  // what is stored is read again later: the loop needs the registers
#endif
        if (!is_near(reinterpret_cast<std::uintptr_t>(said.tensor.data), said.tensor.byte_offset))
            [[unlikely]]
            return false;
        for (std::size_t i = 0; i < n; ++i) {
            const raw_axis a = store_axis(storage, n, i, axis);
            const std::int64_t steps = one_less(a.extent);
            std::int64_t reach = 0;
            if (steps < 0 || mul_overflows(size, a.extent, size) || mul_overflows(steps, a.stride, reach))
                [[unlikely]]
                return false;
            far |= reach;
        }
        out.size_ = size;
        // 64 axes, each of which reaches less than 2^52 far, reach less than 2^58 together.
        return is_within(52, far | one_less(size)) ||
               (is_within(58, one_less(size)) &&
                (is_within(52, far) || (far < 0 && is_low_end_near(out, itemsize))));
    }

    /// What DLPack has no flag for.
    static void add_marks(tensor_ref& t, std::uint64_t marks) noexcept { t.flags_ |= marks; }
    static void drop_marks(tensor_ref& t, std::uint64_t marks) noexcept { t.flags_ &= ~marks; }
    [[nodiscard]] static std::uint64_t marks_of(const tensor_ref& t) noexcept { return t.flags_ & mark::all; }

    /// The whole check, of any description, over a copy in `storage`.
    [[nodiscard]] TENON_API static result<void> check_stored(const claim& said, const std::int64_t* storage,
                                                             tensor_ref& out) noexcept;

private:
    [[nodiscard]] TENON_API static error arrays_unsound(const abi::dl_tensor& t) noexcept;

    /// From 0 to below 2^bits. Of what is below 2^58 sixteen times as much still fits in 64 bits, with a sign
    /// and room for an address.
    TENON_HOT static bool is_within(unsigned bits, std::int64_t value) noexcept {
        return (static_cast<std::uint64_t>(value) >> bits) == 0;
    }
    /// There is an address, and both are below 2^58.
    TENON_HOT static bool is_near(std::uintptr_t address, std::uint64_t offset) noexcept {
        return address != 0 && is_within(58, static_cast<std::int64_t>(address | offset));
    }

    template <class Axis>
    TENON_HOT static raw_axis store_axis(std::int64_t* storage, std::size_t n, std::size_t i,
                                         Axis&& axis) noexcept {
        const raw_axis a = axis(i);
        storage[i] = a.extent;
        storage[n + i] = a.stride;
        return a;
    }

    /// The last question to a layout with steps backwards: no axis reaches further than 2^52 elements in
    /// either direction, and all of them together not below the first address. The products are known to fit.
    [[nodiscard]] TENON_API static bool is_low_end_near(const tensor_ref& t, std::int64_t itemsize) noexcept;

    /// The steps along an axis; negative for one that is empty or has a negative extent, unless that is the
    /// lowest number there is, of which no product is positive.
    TENON_HOT static std::int64_t one_less(std::int64_t extent) noexcept {
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(extent) - 1U);
    }

    TENON_HOT static bool is_ordinary_kind(const claim& said) noexcept {
        const dtype type{said.tensor.dtype};
        return is_known(type) && !type.is_subbyte() && (said.flags & ~abi::flag::all_known) == 0 &&
               static_cast<std::uint32_t>(said.tensor.device.device_type) - 1U < 2U &&  // CPU, CUDA
               said.tensor.device.device_id >= 0;
    }

    TENON_HOT static void fill(const claim& said, const std::int64_t* storage, std::int64_t size,
                               tensor_ref& out) noexcept {
        const abi::dl_tensor& t = said.tensor;
        out.base_ = t.data;
        out.byte_offset_ = t.byte_offset;
        out.shape_ = storage;
        out.strides_ = storage + t.ndim;
        out.size_ = size;
        out.flags_ = said.flags;
        out.ndim_ = t.ndim;
        out.dtype_ = t.dtype;
        out.device_ = t.device;
        out.version_ = said.version;
        out.stream_ = nullptr;
    }

    /// A foreign array need not be aligned.
    TENON_HOT static std::int64_t read(const std::int64_t* array, std::size_t i) noexcept {
        std::int64_t value = 0;
        std::memcpy(&value, reinterpret_cast<const char*>(array) + i * sizeof value, sizeof value);
        return value;
    }

    [[nodiscard]] TENON_API static result<void> check_row_major_apart(const claim& said,
                                                                      std::int64_t* storage,
                                                                      tensor_ref& out) noexcept;
};

}  // namespace tenon::detail
