// src/gpu/stream.cpp: one stream after another, and memory kept until a stream is done with it.
#include <tenon/gpu/stream.hpp>
#include "../standard.hpp"
#include "until_done.hpp"

namespace tenon::gpu {

TENON_INLINE result<void> order(device where, void* earlier, void* later) noexcept {
    earlier = named_stream(where, earlier);
    later = named_stream(where, later);
    if (earlier == later) return {};
    const auto found = driver::needed_for(where, "stream");
    if (!found) return found.error();
    const driver& d = **found;
    if (!may_be_stream(earlier))
        return malformed("stream", "it is no stream's handle", reinterpret_cast<std::intptr_t>(earlier));
    return detail_order::unless_captured(d, where, later, [&](detail_order::capture state) -> result<void> {
        const auto before = detail_order::capture_of(d, earlier);
        // Only within a capture can one wait for the other: elsewhere the work is not there to be waited for.
        const bool is_captured = state == detail_order::capture::active;
        if (is_captured != (before == detail_order::capture::active)) return {};
        if (before == detail_order::capture::of_others) return detail_order::unusable();
        ready_event now;
        int fault = now.record(d, earlier);
        if (fault == 0) fault = now.make_wait(later);
        return d.checked(fault, "stream");
    });
}

TENON_INLINE result<void> keep_until_done(tensor&& t, void* stream) noexcept {
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
