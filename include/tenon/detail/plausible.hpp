// tenon/detail/plausible.hpp: whether an address that came from elsewhere can be one.
#pragma once

#include <cstdint>

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

}  // namespace tenon::detail
