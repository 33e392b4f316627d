// src/memory/readable.hpp: whether memory that came from elsewhere can be read at all.
#pragma once

#include <tenon/detail/plausible.hpp>
#include "../standard.hpp"

#if defined(__linux__)
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#endif

namespace tenon::detail {

/// Whether a struct of `Size` bytes can lie there. The system is asked, which takes as long as a few hundred
/// instructions: for what is looked at once. Where it cannot answer, the address is believed.
template <std::size_t Size>
[[nodiscard]] bool is_readable(const void* address) noexcept {
    if (is_implausible(address) || reinterpret_cast<std::uintptr_t>(address) % alignof(void*) != 0)
        return false;
#if defined(__linux__)
    char copy[Size];
    const iovec to{copy, Size};
    const iovec from{const_cast<void*>(address), Size};
    const ssize_t read = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
    return read == static_cast<ssize_t>(Size) || (read < 0 && errno != EFAULT);
#else
    return true;
#endif
}

}  // namespace tenon::detail
