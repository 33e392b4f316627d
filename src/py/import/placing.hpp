// src/py/import/placing.hpp: imported memory where it is wanted, and ready on the stream it is wanted on.
#pragma once

#include <tenon/py/import.hpp>
#include "../library/all.hpp"
#include "attempt.hpp"
#include "outcome.hpp"
#include "stream.hpp"

namespace tenon::py::detail {

/// Whether a rung delivered what was asked for. On the `last_word` of a producer that cannot bring its memory
/// to the host, that is also what can be fetched from a GPU.
[[nodiscard]] inline result<void> meets(const import_options& options, const tensor_ref& got,
                                        bool last_word) noexcept {
    const bool can_be_fetched =
        last_word && options.wants_host() && options.copy != false && got.device().has_streams();
    if (!options.is_met_by(got.device()) && !can_be_fetched) {
        return refused("device",
                       options.copy == false
                           ? "the data is not on the device asked for, and copy=False was asked for"
                           : "the data is not on the device asked for",
                       got.device().type, options.to.value_or(device{}).type);
    }
    if (options.copy == false && got.is_copied())
        return refused("flags", "copy=False was asked for and the producer made a copy");
    return {};
}

/// Makes the consumer's stream wait for the one that the tensor is ready on, and be the tensor's from then
/// on.
[[nodiscard]] inline outcome follow(attempt& a) noexcept {
    acquired& out = a.out;
    void* const consumer = a.options.stream_handle();
    if (!a.options.orders() || !out.device().has_streams()) return outcome::taken;
    auto ordered = check_stream_number(out.device(), a.options.stream);
    if (ordered) ordered = without_gil([&] { return gpu::order(out.device(), out.stream(), consumer); });
    if (!ordered) {
        const error_guard guard;
        return a.give_up(ordered.error());
    }
    // Its library works on without waiting for ours: it gets its memory back when that is done.
    out.owner = gpu::released_late(std::move(out.owner), out.device(), out.stream(), consumer);
    out.set_stream(consumer);
    return outcome::taken;
}

/// A copy on the same device, on the stream that the memory is ready on; the memory stays until it is made.
[[nodiscard]] inline std::optional<tensor> copied_on_device(const tensor_ref& from,
                                                            keep_alive& owner) noexcept {
    auto copied = unless_failed(without_gil([&] { return gpu::copy_on_device(from, from.stream()); }));
    gpu::release_after_device(std::move(owner), from.device());
    return copied;
}

}  // namespace tenon::py::detail
