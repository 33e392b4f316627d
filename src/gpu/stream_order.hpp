// src/gpu/stream_order.hpp: work on one stream of a GPU made to come after work on another.
#pragma once

#include <tenon/gpu/stream.hpp>
#include <tenon/value/device.hpp>
#include <tenon/value/error.hpp>
#include "../memory/readable.hpp"
#include "../standard.hpp"
#include "cuda_driver.hpp"

namespace tenon::gpu {

/// Whether the number can be a stream's: a driver that is handed any other crashes. One that was a stream's
/// and has been destroyed cannot be told from one that still is.
[[nodiscard]] inline bool may_be_stream(void* stream) noexcept {
    // A program has few streams and names them again and again.
    static thread_local void* seen = nullptr;
    if (reinterpret_cast<std::uintptr_t>(stream) <= 2 || stream == seen) return true;
    if (!detail::is_readable<sizeof(void*)>(stream)) return false;
    seen = stream;
    return true;
}

namespace detail_order {

enum class capture : std::uint8_t { none, active, of_others };

/// Whether the stream is being captured into a graph. `of_others`: the default stream is not, but must not be
/// used, because a stream that it waits for is.
[[nodiscard]] inline capture capture_of(const driver& d, void* stream) noexcept {
    constexpr int implicit = 906;  // CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, and HIP's
    int status = 0;
    const int fault = d.stream_is_capturing(stream, &status);
    if (fault != 0) return fault == implicit ? capture::of_others : capture::none;  // the next call tells it
    return status != 0 ? capture::active : capture::none;
}

/// Using it all the same would end the capture.
[[nodiscard]] inline error unusable() noexcept {
    return refused("stream",
                   "the default stream cannot be used while a stream it waits for is being captured")
        .with_advice("capture on a non-blocking stream, or pass stream=-1");
}

/// Events without a clock, for which a thread waits asleep.
inline constexpr unsigned event_flags = 1 | 2;

}  // namespace detail_order

/// A point in the work of a stream, to be waited for later. Whoever holds one needs the stream no more.
class ready_event {
public:
    ready_event() noexcept = default;
    ready_event(ready_event&& o) noexcept
        : driver_(std::exchange(o.driver_, nullptr)),
          event_(std::exchange(o.event_, nullptr)),
          captured_(o.captured_) {}
    ready_event& operator=(ready_event&& o) noexcept {
        std::swap(driver_, o.driver_);
        std::swap(event_, o.event_);
        std::swap(captured_, o.captured_);
        return *this;
    }
    ready_event(const ready_event&) = delete;
    ready_event& operator=(const ready_event&) = delete;
    ~ready_event() {
        if (event_ != nullptr && !driver_->is_forked()) (void)driver_->event_destroy(event_);
    }

    explicit operator bool() const noexcept { return event_ != nullptr; }
    /// The work was being captured: it runs whenever its graph does, and nobody can wait for it before.
    [[nodiscard]] bool is_captured() const noexcept { return captured_; }
    void mark_captured() noexcept { captured_ = true; }

    /// After what is queued on the stream so far. The context is the caller's.
    [[nodiscard]] int record(const driver& d, void* stream) noexcept {
        const int fault = create(d);
        return fault != 0 ? fault : d.event_record(event_, stream);
    }
    /// After everything that is queued anywhere in the context.
    [[nodiscard]] int record_all(const driver& d, void* context) noexcept {
        const int fault = create(d);
        return fault != 0 ? fault : d.context_record(context, event_);
    }
    [[nodiscard]] int make_wait(void* stream) const noexcept {
        return driver_->stream_wait(stream, event_, 0);
    }
    /// 0 once it has been reached.
    [[nodiscard]] int query() const noexcept {
        const beside_capture relaxed(*driver_);
        return driver_->event_query(event_);
    }
    [[nodiscard]] int synchronize() const noexcept {
        const beside_capture relaxed(*driver_);
        return driver_->event_synchronize(event_);
    }

private:
    [[nodiscard]] int create(const driver& d) noexcept {
        if (event_ != nullptr) return 0;
        driver_ = &d;
        return d.event_create(&event_, detail_order::event_flags);
    }

    const driver* driver_ = nullptr;
    void* event_ = nullptr;
    bool captured_ = false;
};

namespace detail_order {

/// Makes `later` wait for what `earlier` stands for, if that can be: what is being captured comes to run when
/// its graph is replayed, after whatever was queued before, and cannot wait for anything else.
template <class Wait>
[[nodiscard]] result<void> unless_captured(const driver& d, device where, void* later, Wait&& wait) noexcept {
    if (!may_be_stream(later))
        return malformed("stream", "it is no stream's handle", reinterpret_cast<std::intptr_t>(later));
    const context_scope here(d, where.id);
    if (here.fault != 0) return d.failed(here.fault, "stream");
    if (!here.exists) return {};
    const capture state = capture_of(d, later);
    if (state == capture::of_others) return unusable();
    return wait(state);
}

}  // namespace detail_order

/// Makes the stream wait for an event that was recorded before.
[[nodiscard]] inline result<void> order_after(device where, const ready_event& event, void* later) noexcept {
    const auto found = driver::needed_for(where, "stream");
    if (!found) return found.error();
    const driver& d = **found;
    later = named_stream(where, later);
    return detail_order::unless_captured(d, where, later, [&](detail_order::capture state) {
        const bool is_captured = state == detail_order::capture::active;
        return d.checked(is_captured ? 0 : event.make_wait(later), "stream");
    });
}

/// The same for an event that somebody else has recorded and keeps.
[[nodiscard]] inline result<void> order_after(device where, void* event, void* later) noexcept {
    const auto found = driver::needed_for(where, "sync_event");
    if (!found) return found.error();
    const driver& d = **found;
    later = named_stream(where, later);
    return detail_order::unless_captured(d, where, later, [&](detail_order::capture state) {
        const bool is_captured = state == detail_order::capture::active;
        return d.checked(is_captured ? 0 : d.stream_wait(later, event, 0), "sync_event");
    });
}

/// Puts into `out` what is queued on the stream so far. Of the default stream, and where there is no driver
/// and so no work, there is nothing to remember; of one that is being captured only that.
[[nodiscard]] inline result<void> remember(device where, void* stream, ready_event& out) noexcept {
    stream = named_stream(where, stream);
    if (stream == default_stream(where)) return {};
    if (!may_be_stream(stream))
        return malformed("stream", "it is no stream's handle", reinterpret_cast<std::intptr_t>(stream));
    const driver* const found = driver::of(where);
    if (found == nullptr || found->started != 0 || found->is_forked()) return {};
    const driver& d = *found;
    const context_scope here(d, where.id);
    if (here.fault != 0) return d.failed(here.fault, "stream");
    if (!here.exists) return {};
    if (detail_order::capture_of(d, stream) == detail_order::capture::active) {
        out.mark_captured();
        return {};
    }
    return d.checked(out.record(d, stream), "stream");
}

/// Waits, here and now, for an event that somebody else has recorded.
[[nodiscard]] inline result<void> finish_event(device where, void* event) noexcept {
    const auto found = driver::needed_for(where, "sync_event");
    if (!found) return found.error();
    const context_scope here(**found, where.id);
    if (here.fault != 0) return (*found)->failed(here.fault, "sync_event");
    const beside_capture relaxed(**found);
    return (*found)->checked((*found)->event_synchronize(event), "sync_event");
}

/// Waits, here and now, for everything that is queued on the device.
[[nodiscard]] inline result<void> finish_device(device where) noexcept {
    const auto found = driver::needed_for(where, "device");
    if (!found) return found.error();
    const context_scope here(**found, where.id);
    const int fault = here.fault != 0 ? here.fault : here.exists ? (*found)->context_synchronize() : 0;
    return (*found)->checked(fault, "device");
}

/// The same for every device that is in use: memory of the host that devices can reach does not say which of
/// them writes to it. Where there is no device nothing can be pending.
[[nodiscard]] inline result<void> finish_all_devices(device where) noexcept {
    const driver* const d = driver::of(where);
    if (d == nullptr || d->started != 0 || d->is_forked()) return {};
    int count = 0;
    if (const int fault = d->device_count(&count)) return d->failed(fault, "device");
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        if (auto done = finish_device({where.type, ordinal}); !done) return done;
    }
    return {};
}

}  // namespace tenon::gpu
