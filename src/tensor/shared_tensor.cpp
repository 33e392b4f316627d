// src/tensor/shared_tensor.cpp: counting the handles that hold a tensor together.
#include "held.hpp"

namespace tenon {

TENON_INLINE void detail::retain(held* memory) noexcept {
    memory->holders.fetch_add(1, std::memory_order_relaxed);
}

TENON_INLINE void detail::release(held* memory) noexcept {
    if (memory->holders.fetch_sub(1, std::memory_order_acq_rel) == 1)
        release_chain::run(memory, held::let_go, held::let_go);
}

TENON_INLINE detail::holder detail::hold_together(tensor&& t) { return holder(new held(std::move(t))); }

TENON_INLINE const tensor_ref& detail::shown_by(const held& memory) noexcept { return memory.memory; }

TENON_INLINE result<tensor> detail::share_held(held& memory) noexcept {
    const std::scoped_lock lock(memory.sharing);
    return memory.memory.share();
}

}  // namespace tenon
