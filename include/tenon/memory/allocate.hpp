// tenon/memory/allocate.hpp: fresh host memory for a tensor, aligned as vector units and JAX want it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <tenon/tensor/tensor.hpp>
#include <tenon/tensor/tensor_info.hpp>
#include <tenon/value/axes.hpp>
#include <tenon/value/error.hpp>
#include <tenon/value/shape.hpp>

namespace tenon {

/// Vector units and JAX want 64 bytes; a lesser alignment makes JAX copy.
inline constexpr std::size_t allocation_alignment = 64;

namespace detail {
inline void release_aligned(void* memory, void*) noexcept {
    ::operator delete(memory, std::align_val_t{allocation_alignment});
}

/// From here on large pages pay: the kernel clears and maps memory by pages when it is first written to, and
/// that takes longer than the writing. NumPy begins with as much.
inline constexpr std::size_t worth_large_pages = std::size_t{4} << 20U;

/// Asks for large pages behind large memory, before anything is written to it. A kernel that has none, or
/// does not give any, says so, and nothing is lost.
inline void ask_for_large_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (bytes < worth_large_pages) return;
    constexpr std::size_t page = std::size_t{64} << 10U;  // the largest that ordinary pages are
    const auto first = (reinterpret_cast<std::uintptr_t>(memory) + page - 1) / page * page;
    const auto end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / page * page;
    (void)::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
#endif
}

/// A tensor of this type and shape at an address that any allocation may have: what is wrong shows before
/// anything is allocated.
[[nodiscard]] inline result<tensor> plan_allocation(element_type type, const axes& shape,
                                                    bool padded) noexcept {
    const tensor_info info =
        tensor_info::contiguous(reinterpret_cast<void*>(std::uintptr_t{4096}), type, shape);
    return tensor::own(padded ? info.padded() : info, keep_alive());
}
}  // namespace detail

/// A writable, row-major tensor in memory of its own, uninitialised. Sub-byte elements share bytes, unless
/// `padded`.
[[nodiscard]] inline result<tensor> allocate(element_type type, const axes& shape,
                                             bool padded = false) noexcept {
    const auto planned = detail::plan_allocation(type, shape, padded);
    if (!planned) return planned.error();
    const auto bytes = static_cast<std::size_t>(planned->nbytes());
    void* const memory =
        ::operator new(bytes != 0 ? bytes : 1, std::align_val_t{allocation_alignment}, std::nothrow);
    if (memory == nullptr) return out_of_memory("data");
    detail::ask_for_large_pages(memory, bytes);
    const tensor_info info = tensor_info::contiguous(memory, type, shape);
    return tensor::own(padded ? info.padded() : info,
                       keep_alive(memory, detail::release_aligned, keep_alive::plain_memory()));
}
template <class T>
[[nodiscard]] result<tensor> allocate(const axes& shape) noexcept {
    return allocate(dtype_of<T>, shape, dtype_of<T>.is_subbyte());
}

/// For containers of your own whose memory leaves as a tensor:
/// `std::vector<float, tenon::aligned_allocator<float>>` is taken by JAX without a copy.
template <class T>
struct aligned_allocator {
    using value_type = T;

    aligned_allocator() noexcept = default;
    template <class U>
    aligned_allocator(const aligned_allocator<U>&) noexcept {}  // NOLINT(google-explicit-constructor)

    [[nodiscard]] T* allocate(std::size_t count) {
        if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
        return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t{alignment}));
    }
    void deallocate(T* memory, std::size_t) noexcept {
        ::operator delete(memory, std::align_val_t{alignment});
    }
    friend bool operator==(aligned_allocator, aligned_allocator) noexcept { return true; }

private:
    static constexpr std::size_t alignment = std::max(allocation_alignment, alignof(T));
};

}  // namespace tenon
