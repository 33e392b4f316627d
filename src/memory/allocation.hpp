// src/memory/allocation.hpp: what comes before an allocation, and large pages behind a large one.
#pragma once

#include <tenon/tensor/tensor.hpp>
#include "../standard.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace tenon::detail {

/// A tensor of this type and shape at an address that any allocation may have: what is wrong shows before
/// anything is allocated.
[[nodiscard]] inline result<tensor> plan_allocation(element_type type, const axes& shape,
                                                    bool padded) noexcept {
    const tensor_info info =
        tensor_info::contiguous(reinterpret_cast<void*>(std::uintptr_t{4096}), type, shape);
    return tensor::own(info.padded(padded), keep_alive());
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

}  // namespace tenon::detail
