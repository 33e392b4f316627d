// src/memory/allocate.cpp: fresh host memory, in large pages where that pays.
#include <cstddef>
#include <cstdint>
#include <new>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <tenon/memory/allocate.hpp>

#include "plan.hpp"

namespace tenon {

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

}  // namespace detail

TENON_INLINE result<tensor> allocate(element_type type, const axes& shape, bool padded) noexcept {
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
}  // namespace tenon
