// src/gpu/stream.cpp: one stream after another, and memory kept until a stream is done with it.
#include <tenon/gpu/stream.hpp>
#include "../standard.hpp"
#include "until_done.hpp"

namespace tenon::gpu {

TENON_INLINE result<void> order(device where, void* earlier, void* later) noexcept {
    earlier = named_stream(where, earlier);
    if (earlier == named_stream(where, later)) return {};
    if (auto ok = check_stream(earlier); !ok) return ok;
    return make_wait(where, "stream", nullptr, earlier, later);
}

TENON_INLINE result<void> keep_until_done(tensor&& t, void* stream) noexcept {
    const device where = t.device();
    if (!where.is_cuda_memory() && !where.is_rocm_memory())
        return refused("device", "no stream has work with this memory", where.type);
    stream = named_stream(where, stream);
    if (auto ok = check_stream(stream); !ok) return ok;
    const context_scope here(where, "stream", context_scope::missing::create);
    if (!here.entered()) return here.entered();
    if (capture_of(*here, stream) != capture::none) {
        return refused("stream", "it is being captured into a graph, which runs its work later and again")
            .with_advice("keep the tensor as long as the graph");
    }
    ready_event now;
    if (const int fault = now.record(*here, stream)) return here->failed(fault, "stream");
    keep_alive owner = std::move(t.owner());
    t.reset();
    if (now.query() != 0) waiting_room::get().add(std::move(owner), std::move(now), where);
    return {};
}

}  // namespace tenon::gpu
