// src/gpu/stream_order.hpp: work on one stream of a GPU made to come after work on another.
#pragma once

#include <tenon/gpu/stream.hpp>
#include "../memory/addresses.hpp"
#include "../standard.hpp"
#include "cuda_driver.hpp"

namespace tenon::gpu {

/// Refuses numbers that cannot be a stream's: a driver that is handed one crashes. One that was a stream's
/// and has been destroyed cannot be told from one that still is.
[[nodiscard]] inline result<void> check_stream(void* stream) noexcept {
    // A program has few streams and names them again and again.
    static thread_local void* seen = nullptr;
    if (reinterpret_cast<std::uintptr_t>(stream) <= 2 || stream == seen) return {};
    if (!detail::is_readable<sizeof(void*)>(stream))
        return malformed("stream", "it is no stream's handle", reinterpret_cast<std::intptr_t>(stream));
    seen = stream;
    return {};
}

/// A point in the work of a stream, to be waited for later. Whoever holds one needs the stream no more.
class ready_event {
public:
    explicit operator bool() const noexcept { return event_ != nullptr; }
    [[nodiscard]] void* get() const noexcept { return event_.get(); }
    /// The work was being captured: it runs whenever its graph does, and nobody can wait for it before.
    [[nodiscard]] bool is_captured() const noexcept { return captured_; }
    void mark_captured() noexcept { captured_ = true; }

    /// After what is queued on the stream so far. The context is the caller's.
    [[nodiscard]] int record(const driver& d, void* stream) noexcept {
        const int fault = create(d);
        return fault != 0 ? fault : d.event_record(get(), stream);
    }
    /// After everything that is queued anywhere in the context.
    [[nodiscard]] int record_all(const driver& d, void* context) noexcept {
        const int fault = create(d);
        return fault != 0 ? fault : d.context_record(context, get());
    }
    /// 0 once it has been reached.
    [[nodiscard]] int query() const noexcept { return ask(&driver::event_query); }
    [[nodiscard]] int synchronize() const noexcept { return ask(&driver::event_synchronize); }

private:
    struct destroyer {
        const driver* functions;
        void operator()(void* event) const noexcept {
            if (!functions->is_forked()) (void)functions->event_destroy(event);
        }
    };
    [[nodiscard]] int create(const driver& d) noexcept {
        constexpr unsigned without_clock = 2, waited_for_asleep = 1;
        void* made = nullptr;
        const int fault = d.event_create(&made, without_clock | waited_for_asleep);
        event_ = {made, destroyer{&d}};
        return fault;
    }
    [[nodiscard]] int ask(int (*driver::*question)(void*)) const noexcept {
        const driver& d = *event_.get_deleter().functions;
        const beside_capture relaxed(d);
        return (d.*question)(get());
    }

    std::unique_ptr<void, destroyer> event_;
    bool captured_ = false;
};

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

/// Makes `later` wait for `*event` or, without one, for what is queued on `earlier` so far. Where the device
/// has no context there is nothing to wait for.
[[nodiscard]] inline result<void> make_wait(device where, const char* field, void* const* event,
                                            void* earlier, void* later) noexcept {
    later = named_stream(where, later);
    if (auto ok = check_stream(later); !ok) return ok;
    const context_scope here(where, field);
    if (!here.entered() || !here.exists()) return here.entered();
    const capture state = capture_of(*here, later);
    if (state == capture::of_others) return unusable();
    const bool is_captured = state == capture::active;
    ready_event now;
    if (event == nullptr) {
        const capture before = capture_of(*here, earlier);
        // Only within a capture can one wait for the other: elsewhere the work is not there to be waited for.
        if (is_captured != (before == capture::active)) return {};
        if (before == capture::of_others) return unusable();
        if (const int fault = now.record(*here, earlier)) return here->failed(fault, field);
    } else if (is_captured) {
        return {};  // its graph is replayed after whatever was queued before, and waits for nothing else
    }
    return here->checked(here->stream_wait(later, event != nullptr ? *event : now.get(), 0), field);
}

/// Makes the stream wait for an event that somebody has recorded and keeps.
[[nodiscard]] inline result<void> order_after(device where, void* event, void* later,
                                              const char* field = "sync_event") noexcept {
    return make_wait(where, field, &event, nullptr, later);
}
[[nodiscard]] inline result<void> order_after(device where, const ready_event& event, void* later) noexcept {
    return order_after(where, event.get(), later, "stream");
}

/// Puts into `out` what is queued on the stream so far. Of the default stream, and where there is no driver
/// and so no work, there is nothing to remember; of one that is being captured only that.
[[nodiscard]] inline result<void> remember(device where, void* stream, ready_event& out) noexcept {
    stream = named_stream(where, stream);
    if (stream == default_stream(where)) return {};
    if (auto ok = check_stream(stream); !ok) return ok;
    if (driver::usable_for(where) == nullptr) return {};
    const context_scope here(where, "stream");
    if (!here.entered() || !here.exists()) return here.entered();
    if (capture_of(*here, stream) != capture::active)
        return here->checked(out.record(*here, stream), "stream");
    out.mark_captured();
    return {};
}

/// Waits, here and now, for an event that somebody else has recorded.
[[nodiscard]] inline result<void> finish_event(device where, void* event) noexcept {
    const context_scope here(where, "sync_event");
    if (!here.entered()) return here.entered();
    const beside_capture relaxed(*here);
    return here->checked(here->event_synchronize(event), "sync_event");
}

/// Waits, here and now, for everything that is queued on the device.
[[nodiscard]] inline result<void> finish_device(device where) noexcept {
    const context_scope here(where, "device");
    if (!here.entered() || !here.exists()) return here.entered();
    return here->checked(here->context_synchronize(), "device");
}

/// The same for every device that is in use: memory of the host that devices can reach does not say which of
/// them writes to it. Where there is no device nothing can be pending.
[[nodiscard]] inline result<void> finish_all_devices(device where) noexcept {
    const driver* const d = driver::usable_for(where);
    if (d == nullptr) return {};
    int count = 0;
    if (const int fault = d->device_count(&count)) return d->failed(fault, "device");
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        if (auto done = finish_device({where.type, ordinal}); !done) return done;
    }
    return {};
}

}  // namespace tenon::gpu
