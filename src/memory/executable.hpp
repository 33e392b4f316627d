// src/memory/executable.hpp: whether addresses that came from elsewhere can be those of functions.
#pragma once

#include "../standard.hpp"

#if defined(__linux__)
#include <cinttypes>
#include <cstdio>
#endif

namespace tenon::detail {

/// Whether each address, where there is one, is in memory that can be executed. The system is asked, which
/// takes as long as reading a file of some hundred lines: for what is looked at once. Where it cannot answer,
/// the addresses are believed.
[[nodiscard]] inline bool are_executable([[maybe_unused]] std::span<const void* const> addresses) noexcept {
#if defined(__linux__)
    // This process's memory, "from-to rwxp ..." a line.
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> map(std::fopen("/proc/self/maps", "re"),
                                                              &std::fclose);
    if (map == nullptr) return true;
    std::ptrdiff_t missing = std::ranges::count_if(addresses, [](const void* a) { return a != nullptr; });
    std::uintptr_t from = 0, to = 0;
    char may_execute = '-';
    while (missing > 0 &&
           std::fscanf(map.get(), "%" SCNxPTR "-%" SCNxPTR " %*2c%c%*[^\n]", &from, &to, &may_execute) == 3) {
        missing -= std::ranges::count_if(addresses, [&](const void* address) {
            const auto at = reinterpret_cast<std::uintptr_t>(address);
            return address != nullptr && may_execute == 'x' && at >= from && at < to;
        });
    }
    return missing == 0;
#else
    return true;
#endif
}

}  // namespace tenon::detail
