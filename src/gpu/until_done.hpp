// src/gpu/until_done.hpp: memory kept alive until a GPU has done what is queued with it.
#pragma once

#include "../memory/blocking.hpp"
#include "../tensor/ranges.hpp"
#include "stream_order.hpp"

namespace tenon::gpu {

/// Whether a library works on a stream that is being captured, as far as it can be asked on this thread: its
/// memory may be let go of in the middle of a capture, which the calls below would end. A capture on another
/// thread goes unnoticed.
using capture_question = int (*)(abi::dl_device where);

/// First the one for the libraries that this module knows, which the layer sets that knows them; then those
/// of other modules that have handed memory to this one. Those that come last are not asked.
TENON_PRIVATE inline constinit std::array<std::atomic<capture_question>, 17> capture_questions{};

inline void watch_for_module(capture_question ask) noexcept {
    for (auto& place : std::span(capture_questions).subspan(1)) {
        capture_question there = place.load(std::memory_order_relaxed);
        if (there == ask || (there == nullptr && place.compare_exchange_strong(there, ask))) return;
    }
}

/// What this module answers others.
inline int is_any_captured_here(abi::dl_device where) noexcept {
    const capture_question ask = capture_questions.front().load();
    return ask != nullptr ? ask(where) : 0;
}

[[nodiscard]] inline bool is_capture_going_on(const driver& d, device where) noexcept {
    if (capture_of(d, default_stream(where)) != capture::none) return true;
    return is_any(capture_questions, [&](const auto& place) {
        const capture_question ask = place.load();
        return ask != nullptr && ask(where.to_abi()) != 0;
    });
}

/// What waits for a GPU. A thread of its own waits with it and ends when nothing is left; the lists are never
/// destroyed, because the thread may outlive everything else.
class waiting_room {
public:
    struct entry {
        keep_alive owner;
        ready_event event;
        device where;

        void finish() noexcept {
            if (event) detail::blocking([&] { (void)event.synchronize(); });
            event = ready_event();
            owner.reset();
        }
    };

    TENON_PRIVATE static waiting_room& get() noexcept {
        alignas(waiting_room) static std::byte place[sizeof(waiting_room)];
        static waiting_room* const room = new (place) waiting_room;
        return *room;
    }

    /// Lets go of `owner` once the event has been reached. `event` was recorded on `where`.
    void add(keep_alive&& owner, ready_event&& event, device where) noexcept {
        entry late{std::move(owner), std::move(event), where};
        try {
            const std::lock_guard<std::mutex> lock(mutex_);
            entries_.push_back(std::move(late));
            if (!is_running_) {
                std::thread([this] { work(); }).detach();
                is_running_ = true;
            }
            return;
        } catch (...) {  // NOLINT(bugprone-empty-catch): there is no thread, or no memory
        }
        // The caller waits.
        late.finish();
        work();
    }

    /// Lets go of `owner` when that is possible without ending a capture: at a later release.
    void postpone(keep_alive&& owner, device where) noexcept try {
        entry late{std::move(owner), {}, where};  // outlives the lock: without memory it is let go of here
        const std::lock_guard<std::mutex> lock(mutex_);
        postponed_.push_back(std::move(late));
    } catch (...) {  // NOLINT(bugprone-empty-catch): as said above
    }
    /// What was postponed, to be tried again.
    [[nodiscard]] std::vector<entry> take_postponed() noexcept {
        const std::lock_guard<std::mutex> lock(mutex_);
        return std::exchange(postponed_, {});
    }

private:
    void work() noexcept {
        for (;;) {
            entry late;
            {
                const std::lock_guard<std::mutex> lock(mutex_);
                is_running_ = !entries_.empty();
                if (!is_running_) return;
                late = std::move(entries_.front());
                entries_.erase(entries_.begin());
            }
            late.finish();
        }
    }

    std::mutex mutex_;
    std::vector<entry> entries_;
    std::vector<entry> postponed_;
    bool is_running_ = false;
};

/// Lets go of one owner, now or later; false when it had to be postponed.
inline bool let_go(keep_alive&& owner, device where) noexcept {
    keep_alive held = std::move(owner);
    const context_scope here(where, "device");
    if (!here.entered() || !here.exists()) return true;
    ready_event all;
    const bool is_captured = is_capture_going_on(*here, where);
    if (!is_captured && here->context_record == nullptr) {
        // HIP or an older driver: nothing less than waiting will do.
        detail::blocking([&] { (void)here->context_synchronize(); });
    } else if (is_captured || all.record_all(*here, here.context()) != 0) {
        waiting_room::get().postpone(std::move(held), where);
        return false;
    } else if (all.query() != 0) {
        waiting_room::get().add(std::move(held), std::move(all), where);
    }
    return true;
}

/// Lets go of `owner` when everything that is now queued on the device is done, at once if it is idle. For
/// memory whose last reader is a stream that may be gone by now.
inline void release_after_device(keep_alive&& owner, device where) noexcept {
    keep_alive mine = std::move(owner);
    // Nothing can be pending, or this is a child of fork, in which nothing may be asked and no lock taken.
    if (driver::usable_for(where) == nullptr) return;
    // What was postponed has to wait on if this has: not all of it is tried again each time.
    if (!let_go(std::move(mine), where)) return;
    for (auto& earlier : waiting_room::get().take_postponed())
        (void)let_go(std::move(earlier.owner), earlier.where);
}

struct late_owner : detail::release_chain::deletable<late_owner> {
    keep_alive owner;
    device where;
    ~late_owner() { release_after_device(std::move(owner), where); }
};

/// What keeps memory alive for a consumer that may let go of it while its work is still queued: it is
/// released when everything that was queued by then is done. Nothing is let go of here: the memory may be one
/// that stays where it is only as long as no code of others runs.
[[nodiscard]] inline keep_alive released_late(keep_alive&& owner, device where) noexcept {
    keep_alive mine = std::move(owner);
    if ((!where.is_cuda_memory() && !where.is_rocm_memory()) || !mine) return mine;
    auto* const late = new (std::nothrow) late_owner{{}, std::move(mine), where};
    // Without memory for it nothing has been moved, and the order of the release is all that is lost.
    return late != nullptr ? keep_alive(late, &late_owner::release, nullptr, owner_kind::late)
                           : std::move(mine);  // NOLINT(bugprone-use-after-move)
}

/// What an owner lets go of late, or the owner itself.
[[nodiscard]] inline const keep_alive& kept_by(const keep_alive& owner) noexcept {
    // NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter): a temporary one is refused below
    return owner.is(owner_kind::late) ? static_cast<late_owner*>(owner.subject())->owner : owner;
}
const keep_alive& kept_by(keep_alive&& owner) = delete;

/// Whether the two are one stream, which has their work in order.
[[nodiscard]] inline bool is_same_stream(device where, void* one, void* other) noexcept {
    void* const per_thread = reinterpret_cast<void*>(std::uintptr_t{2});  // another one on each thread
    return named_stream(where, one) == named_stream(where, other) && one != per_thread;
}

/// The same, unless producer and consumer work on one stream.
[[nodiscard]] inline keep_alive released_late(keep_alive&& owner, device where, void* producer,
                                              void* consumer) noexcept {
    return is_same_stream(where, producer, consumer) ? std::move(owner)
                                                     : released_late(std::move(owner), where);
}

}  // namespace tenon::gpu
