// src/gpu/stream.cpp: one stream after another, and memory kept until a stream is done with it.
#include <tenon/gpu/stream.hpp>
#include "../standard.hpp"
#include "until_done.hpp"

namespace tenon::gpu {

TENON_INLINE result<void> order(device where, void* earlier, void* later) noexcept {
    using detail_order::capture;
    earlier = named_stream(where, earlier);
    if (earlier == named_stream(where, later)) return {};
    if (auto ok = check_stream(earlier); !ok) return ok;
    const auto wait = [&](const driver& d, void* stream, bool is_captured) -> result<void> {
        const capture before = detail_order::capture_of(d, earlier);
        // Only within a capture can one wait for the other: elsewhere the work is not there to be waited for.
        if (is_captured != (before == capture::active)) return {};
        if (before == capture::of_others) return detail_order::unusable();
        ready_event now;
        int fault = now.record(d, earlier);
        if (fault == 0) fault = d.stream_wait(stream, now.get(), 0);
        return d.checked(fault, "stream");
    };
    return detail_order::make_wait(where, "stream", later, wait);
}

TENON_INLINE result<void> keep_until_done(tensor&& t, void* stream) noexcept {
    const device where = t.device();
    if (!where.is_cuda_memory() && !where.is_rocm_memory())
        return refused("device", "no stream has work with this memory", where.type);
    stream = named_stream(where, stream);
    if (auto ok = check_stream(stream); !ok) return ok;
    const context_scope here(where, "stream", context_scope::missing::create);
    if (!here.entered()) return here.entered();
    const driver& d = here.functions();
    if (detail_order::capture_of(d, stream) != detail_order::capture::none) {
        return refused("stream", "it is being captured into a graph, which runs its work later and again")
            .with_advice("keep the tensor as long as the graph");
    }
    ready_event now;
    if (const int fault = now.record(d, stream)) return d.failed(fault, "stream");
    keep_alive owner = std::move(t.owner());
    t.reset();
    if (now.query() != 0) detail_done::waiting_room::add(std::move(owner), std::move(now), where);
    return {};
}

}  // namespace tenon::gpu
