// src/tensor/managed.cpp: a tensor is handed over as a C struct, legacy or versioned.
#include "managed.hpp"
#include <tenon/tensor/managed.hpp>
#include "../standard.hpp"

namespace tenon {

namespace detail {

template <class Managed>
[[nodiscard]] result<Managed*> hand_over(tensor&& t) noexcept {
    if (auto ok = can_leave_as<Managed>(t); !ok) return ok.error();
    Managed* const made = make_managed<Managed>(t, t.owner());
    if (made == nullptr) return out_of_memory("managed struct");
    t.reset();
    return made;
}

}  // namespace detail

template <>
TENON_INLINE result<abi::managed_tensor*> to_managed(tensor&& t) noexcept {
    return detail::hand_over<abi::managed_tensor>(std::move(t));
}
template <>
TENON_INLINE result<abi::managed_tensor_versioned*> to_managed(tensor&& t) noexcept {
    return detail::hand_over<abi::managed_tensor_versioned>(std::move(t));
}

}  // namespace tenon
