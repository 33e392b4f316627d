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
        if (shared->holders.fetch_sub(1, std::memory_order_acq_rel) == 1)
            release_chain::run(shared, let_go, let_go);
    }
};

}  // namespace tenon::detail
