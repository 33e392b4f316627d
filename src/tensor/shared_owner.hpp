// src/tensor/shared_owner.hpp: one owner that several tensors have in common.
#pragma once

#include <tenon/tensor/keep_alive.hpp>
#include "../standard.hpp"

namespace tenon::detail {

/// What several tensors keep alive together, until the last of them lets go.
struct shared_owner : release_chain::deletable<shared_owner> {
    std::atomic<std::size_t> holders{0};
    keep_alive owner;

    [[nodiscard]] keep_alive hold() noexcept {
        holders.fetch_add(1, std::memory_order_relaxed);
        return {this, &release, nullptr, owner_kind::shared};
    }
    static void release(void* self, void*) noexcept {
        auto* const shared = static_cast<shared_owner*>(self);
        if (shared->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) release_chain::run(shared);
    }
};

/// A second holder of what `owner` keeps. Nothing to keep needs none; false when there is no memory for it,
/// and `owner` is as it was.
[[nodiscard]] inline bool share_owner(keep_alive& owner, keep_alive& out) noexcept {
    if (!owner) return true;
    if (!owner.is(owner_kind::shared)) {
        auto* const shared = new (std::nothrow) shared_owner;
        if (shared == nullptr) return false;
        shared->owner = std::move(owner);
        owner = shared->hold();
    }
    out = static_cast<shared_owner*>(owner.subject())->hold();
    return true;
}

}  // namespace tenon::detail
