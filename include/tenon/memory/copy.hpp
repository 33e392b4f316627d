// tenon/memory/copy.hpp: a compact, row-major, 64-byte-aligned copy of a tensor in host memory, by several
// threads where that pays.
#pragma once

#include <tenon/tensor/tensor.hpp>

namespace tenon {

/// Asked now and then during a long copy, on the thread that called: false gives the copy up.
struct copy_watch {
    bool (*go_on)(void* context) noexcept = nullptr;
    void* context = nullptr;
};

/// Copies host-accessible memory; the result is writable, compact and marked as copied. Packed sub-byte
/// elements are copied only when they are contiguous.
[[nodiscard]] TENON_API result<tensor> copy_to_host(const tensor_ref& from, copy_watch watch = {}) noexcept;

}  // namespace tenon
