// tenon/detail/readable.hpp: whether an address that came from elsewhere can be read at all.
#pragma once

#include <cstddef>
#include <cstdint>
#if defined(__linux__)
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#endif

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
