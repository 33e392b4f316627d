// src/tensor/shared_tensor.cpp: counting the handles that hold a tensor together.
#include "held.hpp"
#include "shared_owner.hpp"

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

TENON_INLINE result<tensor> tensor::share() noexcept {
    keep_alive second;  // empty where there is nothing to keep
    if (owner_ && !owner_.is(owner_kind::shared)) {
        auto* const shared = new (std::nothrow) detail::shared_owner;
        if (shared == nullptr) return out_of_memory("owner");
        shared->owner = std::move(owner_);
        owner_ = shared->hold();
    }
    if (owner_) second = static_cast<detail::shared_owner*>(owner_.subject())->hold();
    if (is_copied()) flags_ &= ~abi::flag::is_copied;  // others may be reading them
    std::optional<tensor> out;
    if (auto ok = keep(*this, second, out); !ok) return ok.error();
    return std::move(*out);  // NOLINT(bugprone-unchecked-optional-access): `keep` has filled it
}

}  // namespace tenon
