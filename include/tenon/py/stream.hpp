// tenon/py/stream.hpp: which stream number a producer is told in `__dlpack__(stream=...)`.
#pragma once

#include <cstdint>
#include <optional>

#include <tenon/core/device.hpp>

namespace tenon::py {

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
