// src/memory/blocking.hpp: waiting without the locks that what is waited for may need.
#pragma once

#include <tenon/detail/config.hpp>
#include "../standard.hpp"

namespace tenon::detail {

/// Runs `wait(what)` with the locks let go of that this thread has.
using lock_keeper = void (*)(void (*wait)(void*) noexcept, void* what) noexcept;

/// Set by the layer above, which knows of the GIL.
inline constinit std::atomic<lock_keeper> known_lock_keeper TENON_PRIVATE{nullptr};

/// Runs `fn`, which may wait for long and touches nothing that a lock protects.
template <class Fn>
void blocking(Fn&& fn) noexcept {
    if (const lock_keeper keeper = known_lock_keeper.load()) {
        keeper([](void* what) noexcept { (*static_cast<std::remove_reference_t<Fn>*>(what))(); }, &fn);
    } else {
        std::forward<Fn>(fn)();
    }
}

}  // namespace tenon::detail
