// tenon/core/until_done.hpp: memory kept alive until a GPU has done what is queued with it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <tenon/abi/dlpack.hpp>
#include <tenon/core/attributes.hpp>
#include <tenon/core/cuda_driver.hpp>
#include <tenon/core/device.hpp>
#include <tenon/core/error.hpp>
#include <tenon/core/keep_alive.hpp>
#include <tenon/core/stream_order.hpp>
#include <tenon/core/tensor.hpp>

namespace tenon::gpu {

namespace detail_done {

/// How libraries say which stream they work on, as their exchange tables have it.
using stream_source = int (*)(std::int32_t kind, std::int32_t id, void** out);

/// The libraries whose streams may be captured on this thread: their memory is let go of in the middle of it.
class stream_sources {
public:
    static void add(stream_source source) noexcept {
        for (std::atomic<stream_source>& place : places()) {
            stream_source free = nullptr;
            if (place.compare_exchange_strong(free, source) || free == source) return;
        }
    }
    [[nodiscard]] static bool is_any_capturing(const driver& d, device where) noexcept {
        if (detail_order::capture_of(d, default_stream(where)) != detail_order::capture::none) return true;
        for (const std::atomic<stream_source>& place : places()) {
            const stream_source source = place.load();
            void* stream = nullptr;
            if (source == nullptr) return false;
            if (source(where.type, where.id, &stream) != 0 || stream == nullptr) continue;
            if (detail_order::capture_of(d, stream) == detail_order::capture::active) return true;
        }
        return false;
    }

private:
    using list = std::array<std::atomic<stream_source>, 8>;
    TENON_PRIVATE static list& places() noexcept {
        static constinit list known{};
        return known;
    }
};

/// What waits for a GPU. A thread of its own waits with it and ends when nothing is left; the list is never
/// destroyed, because the thread may outlive everything else.
class waiting_room {
public:
    /// Lets go of `owner` once the event has been reached. `event` was recorded on `where`.
    static void add(keep_alive&& owner, ready_event&& event, device where) noexcept {
        entry late{std::move(owner), std::move(event), where};
        try {
            waiting_room& room = get();
            const std::lock_guard<std::mutex> lock(room.mutex_);
            room.entries_.push_back(std::move(late));
            if (!room.is_running_) {
                std::thread([&room] { room.work(); }).detach();
                room.is_running_ = true;
            }
            return;
        } catch (...) {  // NOLINT(bugprone-empty-catch): there is no thread, or no memory
        }
        get().drain();
        late.finish();
    }

    /// Lets go of `owner` when that is possible without ending a capture: at a later release.
    static void postpone(keep_alive&& owner, device where) noexcept try {
        waiting_room& room = get();
        const std::lock_guard<std::mutex> lock(room.mutex_);
        room.postponed_.push_back({std::move(owner), {}, where});
    } catch (...) {  // NOLINT(bugprone-empty-catch): no memory: it is let go of as it is
    }
    /// What was postponed, to be tried again.
    template <class Again>
    static void retry(Again&& again) noexcept {
        waiting_room& room = get();
        std::vector<entry> earlier;
        {
            const std::lock_guard<std::mutex> lock(room.mutex_);
            if (room.postponed_.empty()) return;
            earlier.swap(room.postponed_);
        }
        for (entry& e : earlier) again(std::move(e.owner), e.where);
    }

private:
    struct entry {
        keep_alive owner;
        ready_event event;
        device where;

        void finish() noexcept {
            if (event) (void)event.synchronize();
            event = ready_event();
            owner.reset();
        }
    };

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
    void work() noexcept {
        entry late;
        while (next(late)) late.finish();
    }
    /// Where no thread can be had, the caller waits.
    void drain() noexcept {
        std::vector<entry> all;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (is_running_) return;
            all.swap(entries_);
        }
        for (entry& e : all) e.finish();
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

/// Lets go of one owner, now or later.
inline void let_go(const driver& d, keep_alive&& owner, device where) noexcept {
    keep_alive held = std::move(owner);
    const context_scope here(d, where.id);
    if (here.fault != 0 || !here.exists) return;
    if (stream_sources::is_any_capturing(d, where)) {
        waiting_room::postpone(std::move(held), where);
        return;
    }
    ready_event all;
    if (d.context_record == nullptr) {  // an older driver: nothing less than waiting will do
        (void)d.context_synchronize();
    } else if (all.record_all(d, here.get()) != 0) {
        waiting_room::postpone(std::move(held), where);
    } else if (all.query() != 0) {
        waiting_room::add(std::move(held), std::move(all), where);
    }
}

}  // namespace detail_done

/// Lets go of `owner` when everything that is now queued on the device is done, at once if it is idle. For
/// memory whose last reader is a stream that may be gone by now.
inline void release_after_device(keep_alive&& owner, device where) noexcept {
    keep_alive mine = std::move(owner);
    const auto found = driver::needed_for(where, "device");
    if (!found) return;  // nothing can be pending, or this is a child of fork, in which nothing may be asked
    const driver& d = **found;
    detail_done::waiting_room::retry(
        [&](keep_alive&& earlier, device there) { detail_done::let_go(d, std::move(earlier), there); });
    detail_done::let_go(d, std::move(mine), where);
}

namespace detail_done {

struct late_owner {
    keep_alive owner;
    device where;
    late_owner(keep_alive&& o, device w) noexcept : owner(std::move(o)), where(w) {}
    late_owner(late_owner&&) noexcept = default;
    ~late_owner() {
        if (owner.release_function() != nullptr) release_after_device(std::move(owner), where);
    }
};

}  // namespace detail_done

/// What keeps memory alive for a consumer on `consumer`, when it was made on `producer`: where the two
/// differ, the consumer may let go while its work is still queued, and the producer's library must not use
/// the memory again before that is done.
[[nodiscard]] inline keep_alive released_late(keep_alive&& owner, device where, void* producer,
                                              void* consumer) noexcept {
    keep_alive mine = std::move(owner);
    if ((!where.is_cuda_memory() && !where.is_rocm_memory()) || mine.release_function() == nullptr ||
        named_stream(where, producer) == named_stream(where, consumer))
        return mine;
    detail_done::late_owner late(std::move(mine), where);
    keep_alive out;
    // Without memory for it, the order of the release is all that is lost.
    if (tenon::detail::keep_moved(late, out) == nullptr) return std::move(late.owner);
    return out;
}

/// Keeps `t` until what is now queued on `stream` is done, and lets go of it then, on whichever thread. For a
/// function that has launched work on a stream of its own and does not wait for it:
///
///     launch(t.data(), my_stream);
///     tenon::gpu::keep_until_done(std::move(t), my_stream);
///
/// On failure the tensor stays with the caller: so it does when the stream is being captured into a graph,
/// which may be replayed as long as it lives.
[[nodiscard]] inline result<void> keep_until_done(tensor&& t, void* stream) noexcept {
    if (!t.device().is_cuda_memory() && !t.device().is_rocm_memory())
        return refused("device", "no stream has work with this memory", t.device().type);
    const auto found = driver::needed_for(t.device(), "stream");
    if (!found) return found.error();
    const driver& d = **found;
    stream = named_stream(t.device(), stream);
    if (!may_be_stream(stream))
        return malformed("stream", "it is no stream's handle", reinterpret_cast<std::intptr_t>(stream));
    const context_scope here(d, t.device().id, context_scope::missing::create);
    if (here.fault != 0) return d.failed(here.fault, "stream");
    if (detail_order::capture_of(d, stream) != detail_order::capture::none) {
        return refused("stream", "it is being captured into a graph, which runs its work later and again")
            .with_advice("keep the tensor as long as the graph");
    }
    ready_event now;
    if (const int fault = now.record(d, stream)) return d.failed(fault, "stream");
    keep_alive owner = std::move(t.owner());
    const device where = t.device();
    t.reset();
    if (now.query() != 0) detail_done::waiting_room::add(std::move(owner), std::move(now), where);
    return {};
}

}  // namespace tenon::gpu
