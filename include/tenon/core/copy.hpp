// tenon/core/copy.hpp: a compact, row-major, 64-byte-aligned copy of a tensor in host memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include <tenon/core/error.hpp>
#include <tenon/core/tensor.hpp>

namespace tenon {

/// Vector units and JAX want 64 bytes; a lesser alignment makes JAX copy.
inline constexpr std::size_t copy_alignment = 64;

namespace detail {

inline void release_aligned(void* memory, void*) noexcept {
    ::operator delete(memory, std::align_val_t{copy_alignment});
}

/// Copies element by element in row-major order, whole inner rows at a time where they are compact.
inline void copy_strided(const tensor_ref& from, std::byte* to) noexcept {
    const auto item = static_cast<std::size_t>(from.itemsize());
    const auto rank = static_cast<std::size_t>(from.ndim());
    // The trailing axes that are already compact move as one run.
    std::size_t outer = rank;
    std::int64_t run = 1;
    while (outer > 0 && (from.shape(outer - 1) == 1 || from.stride(outer - 1) == run))
        run *= from.shape(--outer);
    const std::size_t run_bytes = static_cast<std::size_t>(run) * item;

    std::array<std::int64_t, static_cast<std::size_t>(max_rank)> index{};
    const std::int64_t runs = from.size() / run;
    std::int64_t offset = 0;
    for (std::int64_t n = 0; n < runs; ++n) {
        std::memcpy(to, static_cast<const std::byte*>(from.data()) + offset * static_cast<std::int64_t>(item),
                    run_bytes);
        to += run_bytes;
        for (std::size_t axis = outer; axis-- > 0;) {
            if (from.shape(axis) == 1) continue;  // its stride may be anything
            offset += from.stride(axis);
            if (++index[axis] < from.shape(axis)) break;
            offset -= from.stride(axis) * from.shape(axis);
            index[axis] = 0;
        }
    }
}

}  // namespace detail

/// Copies host-accessible memory; the result is writable, compact and marked as copied. Packed sub-byte
/// elements are copied only when they are contiguous.
[[nodiscard]] inline result<tensor> copy_to_host(const tensor_ref& from) noexcept {
    if (!from.device().is_host_accessible()) {
        return refused("device", "only host memory can be copied here", from.device().type)
            .with_advice("ask the producing library for a copy on the CPU");
    }
    const bool packed = from.dtype().is_subbyte() && !from.is_subbyte_padded();
    if (packed && !from.is_c_contiguous()) {
        return refused("strides", "packed sub-byte elements can only be copied when contiguous")
            .with_advice("make it contiguous first");
    }
    const auto bytes = static_cast<std::size_t>(from.nbytes());
    void* memory = ::operator new(bytes != 0 ? bytes : 1, std::align_val_t{copy_alignment}, std::nothrow);
    if (memory == nullptr) return out_of_memory("copy");
    keep_alive owner(memory, detail::release_aligned);
    if (packed && bytes != 0)
        std::memcpy(memory, from.data(), bytes);
    else if (!from.empty())
        detail::copy_strided(from, static_cast<std::byte*>(memory));

    const abi::dl_tensor t{memory,
                           device{}.to_abi(),
                           from.ndim(),
                           from.dtype().to_abi(),
                           const_cast<std::int64_t*>(from.shape().data()),  // only read, by the validator
                           nullptr,
                           0};
    const std::uint64_t flags = abi::flag::is_copied | (from.flags() & abi::flag::subbyte_padded);
    return tensor::adopt(t, flags, from.version(), owner, {.allow_unknown = true});
}

}  // namespace tenon
