// src/py/import/stream.hpp: the numbers of streams in `__dlpack__(stream=...)`: what they mean, and which is
// passed.
#pragma once

#include "../library/all.hpp"

namespace tenon::py {

/// Whether the number means anything on the device: CUDA has no 0, which could be either default stream, and
/// ROCm neither 1 nor 2. None and -1 do everywhere.
[[nodiscard]] inline result<void> check_stream_number(device where,
                                                      std::optional<std::intptr_t> stream) noexcept {
    if (!stream || *stream == -1) return {};
    if (where.is_cuda_memory() && *stream == 0) {
        return malformed("stream", "stream=0 is ambiguous on CUDA")
            .with_advice("pass 1 (legacy default), 2 (per-thread default) or a handle");
    }
    if (where.is_rocm_memory() && (*stream == 1 || *stream == 2)) {
        return malformed("stream", "1 and 2 mean nothing on ROCm", *stream)
            .with_advice("pass None, -1, 0 or a handle");
    }
    if ((where.is_cuda_memory() || where.is_rocm_memory()) && *stream < 0)
        return malformed("stream", "it is neither -1 nor a handle", *stream);
    return {};
}

/// The stream a consumer means by its number, as a handle; None means the default one.
[[nodiscard]] inline void* consumer_stream(device where, std::optional<std::intptr_t> stream) noexcept {
    return reinterpret_cast<void*>(stream.value_or(where.is_cuda_memory() ? 1 : 0));
}

/// The number to pass, or nullopt to pass none. Host memory has no streams, and a copy to the host is
/// synchronised by the producer. An accelerator's consumer always says its stream: what `None` means differs
/// between libraries. Without one of its own it names the default stream: 1 on CUDA, 0 on ROCm.
[[nodiscard]] inline std::optional<std::intptr_t> stream_argument(
    std::optional<device> producer, std::optional<device> target,
    std::optional<std::intptr_t> consumer) noexcept {
    if (target && target->is_host_accessible()) return std::nullopt;
    if (producer && producer->has_streams())
        return consumer ? *consumer : static_cast<std::intptr_t>(producer->is_cuda() ? 1 : 0);
    // A device of unknown stream rules: only what the caller said.
    if (producer && producer->is_host_accessible()) return std::nullopt;
    return consumer;
}

}  // namespace tenon::py
