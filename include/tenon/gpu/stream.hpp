// tenon/gpu/stream.hpp: for functions with streams of their own: order, and what is kept until it is done.
#pragma once

#include <tenon/tensor/tensor.hpp>

namespace tenon::gpu {

/// Makes the stream `later` wait for what has been queued on `earlier` so far; the host waits for nothing.
/// Null stands for the default stream.
[[nodiscard]] TENON_API result<void> order(device where, void* earlier, void* later) noexcept;

/// Keeps `t` until what is now queued on `stream` is done, and lets go of it then, on whichever thread. For a
/// function that has launched work on a stream of its own and does not wait for it:
///
///     launch(t.data(), my_stream);
///     tenon::gpu::keep_until_done(std::move(t), my_stream);
///
/// On failure the tensor stays with the caller: so it does when the stream is being captured into a graph,
/// which may be replayed as long as it lives.
[[nodiscard]] TENON_API result<void> keep_until_done(tensor&& t, void* stream) noexcept;

}  // namespace tenon::gpu
