// src/tensor/managed.cpp: what a received struct says, letting go of it, and handing over one of our own.
#include "managed.hpp"
#include <tenon/detail/foreign_code.hpp>
#include <tenon/tensor/managed.hpp>
#include "../standard.hpp"

namespace tenon {

namespace detail {

inline error no_deleter() noexcept { return malformed("deleter", "the pointer cannot be a function"); }

/// Read as legacy, a versioned struct has its version where `data` is (major 1 and a small minor, or any
/// small pair) and its flags, a small integer, where `shape` is.
[[nodiscard]] inline bool looks_versioned(const abi::dl_tensor& t) noexcept {
    const auto head = reinterpret_cast<std::uintptr_t>(t.data);
    const auto flags = reinterpret_cast<std::uintptr_t>(t.shape);
    const std::uint64_t major = static_cast<std::uint64_t>(head) & 0xffffffffU;
    const std::uint64_t minor = static_cast<std::uint64_t>(head) >> 32U;
    return major >= 1 && major < 64 && minor < 256 && flags < 4096 && t.ndim != 0;
}

template <class Managed>
[[nodiscard]] result<Managed*> hand_over(tensor&& t) noexcept {
    if (auto ok = can_leave_as<Managed>(t); !ok) return ok.error();
    Managed* const made = make_managed<Managed>(t, t.owner());
    if (made == nullptr) return out_of_memory("managed struct");
    t.reset();
    return made;
}

}  // namespace detail

TENON_INLINE void foreign::call_deleter(void* managed, bool versioned) noexcept try {
    const auto call = [](auto* m) {
        if (!detail::is_implausible(reinterpret_cast<const void*>(m->deleter)))
            foreign_code([&] { m->deleter(m); });
    };
    if (cannot_be(managed)) return;
    if (versioned)
        call(static_cast<abi::managed_tensor_versioned*>(managed));
    else
        call(static_cast<abi::managed_tensor*>(managed));
} catch (...) {  // NOLINT(bugprone-empty-catch): there is nobody to tell
}

TENON_INLINE result<foreign::description> foreign::describe(const void* managed, bool versioned) noexcept {
    if (managed == nullptr) return malformed("capsule", "there is no managed struct");
    if (cannot_be(managed)) return malformed("capsule", "the pointer cannot be a managed struct");
    if (versioned) {
        const auto* m = static_cast<const abi::managed_tensor_versioned*>(managed);
        if (m->version.major != abi::dlpack_major) {
            return refused("version", "DLPack major version not supported", m->version.major,
                           abi::dlpack_major);
        }
        if (detail::is_implausible_function(m->deleter)) return detail::no_deleter();
        return description{m->tensor, m->flags, m->version};
    }
    const auto* m = static_cast<const abi::managed_tensor*>(managed);
    const abi::dl_tensor t = m->tensor;
    if (detail::looks_versioned(t)) {
        return malformed("capsule", "a versioned struct under the legacy name \"dltensor\"")
            .with_advice("the producer must name it \"dltensor_versioned\"");
    }
    if (detail::is_implausible_function(m->deleter)) return detail::no_deleter();
    return description{t, 0, {0, 0}};
}

template <>
TENON_INLINE result<abi::managed_tensor*> to_managed(tensor&& t) noexcept {
    return detail::hand_over<abi::managed_tensor>(std::move(t));
}
template <>
TENON_INLINE result<abi::managed_tensor_versioned*> to_managed(tensor&& t) noexcept {
    return detail::hand_over<abi::managed_tensor_versioned>(std::move(t));
}

}  // namespace tenon
