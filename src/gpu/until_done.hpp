// src/gpu/until_done.hpp: memory kept alive until a GPU has done what is queued with it.
#pragma once

#include "../memory/blocking.hpp"
#include "../standard.hpp"
#include "stream_order.hpp"

namespace tenon::gpu {

namespace detail_done {

/// Whether a library works on a stream that is being captured, as far as it can be asked on this thread: its
/// memory may be let go of in the middle of a capture, which the calls below would end. The layer that knows
/// the libraries sets it; a capture on another thread goes unnoticed.
using capture_question = bool (*)(const driver& d, device where) noexcept;

TENON_PRIVATE inline std::atomic<capture_question>& capture_watch() noexcept {
    static constinit std::atomic<capture_question> known{nullptr};
    return known;
}

/// The same for the libraries that another module knows, which has handed memory to this one.
using capture_question_of_module = int (*)(abi::dl_device where);

/// Of the modules in a process, those that come last are not asked.
[[nodiscard]] TENON_PRIVATE inline std::array<std::atomic<capture_question_of_module>, 16>&
watches_of_modules() noexcept {
    static constinit std::array<std::atomic<capture_question_of_module>, 16> known{};
    return known;
}
inline void watch_for_module(capture_question_of_module ask) noexcept {
    for (auto& place : watches_of_modules()) {
        capture_question_of_module there = place.load(std::memory_order_relaxed);
        if (there == ask || (there == nullptr && place.compare_exchange_strong(there, ask))) return;
    }
}

/// What this module answers others.
inline int is_any_captured_here(abi::dl_device where) noexcept {
    const capture_question ask = capture_watch().load();
    const driver* const d = ask != nullptr ? driver::of(device(where)) : nullptr;
    return d != nullptr && ask(*d, device(where)) ? 1 : 0;
}

[[nodiscard]] inline bool is_capture_going_on(const driver& d, device where) noexcept {
    if (detail_order::capture_of(d, default_stream(where)) != detail_order::capture::none) return true;
    if (is_any_captured_here(where.to_abi()) != 0) return true;
    for (const auto& place : watches_of_modules()) {
        const capture_question_of_module of_module = place.load();
        if (of_module == nullptr) break;
        if (of_module(where.to_abi()) != 0) return true;
    }
    return false;
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
            if (event) tenon::detail::blocking([&] { (void)event.synchronize(); });
            event = ready_event();
            owner.reset();
        }
    };

    /// Lets go of `owner` once the event has been reached. `event` was recorded on `where`.
    static void add(keep_alive&& owner, ready_event&& event, device where) noexcept {
        entry late{std::move(owner), std::move(event), where};
        waiting_room& room = get();
        try {
            const std::lock_guard<std::mutex> lock(room.mutex_);
            room.entries_.push_back(std::move(late));
            if (!room.is_running_) {
                std::thread([&room] { room.work(); }).detach();
                room.is_running_ = true;
            }
            return;
        } catch (...) {  // NOLINT(bugprone-empty-catch): there is no thread, or no memory
        }
        // The caller waits.
        late.finish();
        room.work();
    }

    /// Lets go of `owner` when that is possible without ending a capture: at a later release.
    static void postpone(keep_alive&& owner, device where) noexcept try {
        waiting_room& room = get();
        entry late{std::move(owner), {}, where};  // outlives the lock: without memory it is let go of here
        const std::lock_guard<std::mutex> lock(room.mutex_);
        room.postponed_.push_back(std::move(late));
    } catch (...) {  // NOLINT(bugprone-empty-catch): as said above
    }
    /// What was postponed, to be tried again.
    [[nodiscard]] static std::vector<entry> take_postponed() noexcept {
        waiting_room& room = get();
        const std::lock_guard<std::mutex> lock(room.mutex_);
        return std::exchange(room.postponed_, {});
    }

private:
    void work() noexcept {
        entry late;
        while (next(late)) late.finish();
    }
    [[nodiscard]] bool next(entry& out) noexcept {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (entries_.empty()) {
            is_running_ = false;
            return false;
        }
        out = std::move(entries_.front());
        entries_.erase(entries_.begin());
        return true;
    }
    TENON_PRIVATE static waiting_room& get() noexcept {
        alignas(waiting_room) static std::byte place[sizeof(waiting_room)];
        static waiting_room* const room = new (place) waiting_room;
        return *room;
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
    const driver& d = here.functions();
    ready_event all;
    const bool is_captured = is_capture_going_on(d, where);
    if (!is_captured && d.context_record == nullptr) {
        // HIP or an older driver: nothing less than waiting will do.
        tenon::detail::blocking([&] { (void)d.context_synchronize(); });
    } else if (is_captured || all.record_all(d, here.context()) != 0) {
        waiting_room::postpone(std::move(held), where);
        return false;
    } else if (all.query() != 0) {
        waiting_room::add(std::move(held), std::move(all), where);
    }
    return true;
}

}  // namespace detail_done

/// Lets go of `owner` when everything that is now queued on the device is done, at once if it is idle. For
/// memory whose last reader is a stream that may be gone by now.
inline void release_after_device(keep_alive&& owner, device where) noexcept {
    keep_alive mine = std::move(owner);
    // Nothing can be pending, or this is a child of fork, in which nothing may be asked and no lock taken.
    if (driver::usable_for(where) == nullptr) return;
    // What was postponed has to wait on if this has: not all of it is tried again each time.
    if (!detail_done::let_go(std::move(mine), where)) return;
    for (auto& earlier : detail_done::waiting_room::take_postponed())
        (void)detail_done::let_go(std::move(earlier.owner), earlier.where);
}

namespace detail_done {

struct late_owner {
    keep_alive owner;
    device where;
    late_owner(keep_alive&& o, device w) noexcept : owner(std::move(o)), where(w) {}
    late_owner(late_owner&&) noexcept = default;
    ~late_owner() {
        if (owner) release_after_device(std::move(owner), where);
    }
};

}  // namespace detail_done

/// What keeps memory alive for a consumer that may let go of it while its work is still queued: it is
/// released when everything that was queued by then is done. Nothing is let go of here: the memory may be one
/// that stays where it is only as long as no code of others runs.
[[nodiscard]] inline keep_alive released_late(keep_alive&& owner, device where) noexcept {
    keep_alive mine = std::move(owner);
    if ((!where.is_cuda_memory() && !where.is_rocm_memory()) || !mine) return mine;
    detail_done::late_owner late(std::move(mine), where);
    keep_alive out;
    // Without memory for it, the order of the release is all that is lost.
    if (tenon::detail::keep_moved(late, out, owner_kind::late) == nullptr) return std::move(late.owner);
    return out;
}

/// What an owner lets go of late, or the owner itself.
[[nodiscard]] inline const keep_alive& kept_by(const keep_alive& owner) noexcept {
    using late = tenon::detail::box<detail_done::late_owner>;
    // NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter): a temporary one is refused below
    return owner.is(owner_kind::late) ? static_cast<late*>(owner.subject())->object.owner : owner;
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
