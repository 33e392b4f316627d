// src/memory/addresses.hpp: whether an address that came from elsewhere can be read, or executed.
#pragma once

#include <tenon/tensor/validate.hpp>
#include "../tensor/ranges.hpp"

#if defined(__linux__)
#include <sys/uio.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#endif

namespace tenon::detail {

// The system is asked, which takes long: for what is looked at once. Where it cannot answer, addresses are
// believed.

/// Whether a struct of `Size` bytes can lie there: as long as a few hundred instructions.
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

/// Whether each address, where there is one, is in memory that can be executed: as long as reading a file of
/// some hundred lines.
[[nodiscard]] inline bool are_executable([[maybe_unused]] std::span<const void* const> addresses) noexcept {
#if defined(__linux__)
    // This process's memory, "from-to rwxp ..." a line.
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> map(std::fopen("/proc/self/maps", "re"),
                                                              &std::fclose);
    if (map == nullptr) return true;
    std::ptrdiff_t missing = 0;
    for (const void* const address : addresses) missing += address != nullptr ? 1 : 0;
    std::uintptr_t from = 0, to = 0;
    char may_execute = '-';
    while (missing > 0 &&  // NOLINTNEXTLINE(bugprone-unchecked-string-to-number-conversion): the kernel's
           std::fscanf(map.get(), "%" SCNxPTR "-%" SCNxPTR " %*2c%c%*[^\n]", &from, &to, &may_execute) == 3) {
        for (const void* const address : addresses) {
            const auto at = reinterpret_cast<std::uintptr_t>(address);
            missing -= address != nullptr && may_execute == 'x' && at >= from && at < to ? 1 : 0;
        }
    }
    return missing == 0;
#else
    return true;
#endif
}

}  // namespace tenon::detail
