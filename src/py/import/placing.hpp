// src/py/import/placing.hpp: imported memory where it is wanted, kept, copied or fetched, and ready on the
// stream it is wanted on.
#pragma once

#include "attempt.hpp"

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

namespace detail {

/// Whether a rung delivered what was asked for. On the `last_word` of a producer that cannot bring its memory
/// to the host, that is also what can be fetched from a GPU.
[[nodiscard]] inline result<void> meets(const import_options& options, const tensor_ref& got,
                                        bool last_word) noexcept {
    const bool can_be_fetched =
        last_word && options.wants_host() && options.copy != false && got.device().has_streams();
    if (!options.is_met_by(got.device()) && !can_be_fetched)
        return elsewhere(got.device(), options, options.copy == false);
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

/// Raises what an import lacks of what was asked of it.
inline std::nullopt_t refuse_unmet(PyObject* obj, const error& e) noexcept {
    raise_unmet(e, obj);
    return std::nullopt;
}

/// Whatever was acquired, kept, copied or fetched as the options say; nullopt with an exception set.
[[nodiscard]] inline std::optional<tensor> settle(PyObject* obj, acquired& got,
                                                  const import_options& options) noexcept {
    const bool copies = options.copy == true && (!got.is_copied() || got.is_read_only());
    // What the host is to read, the device must have written.
    if ((copies || options.wants_host()) && !finish_device_work(got.device())) return std::nullopt;
    if (options.wants_host() && got.device().has_streams())
        return unless_failed(without_gil([&] { return gpu::fetch(got); }));
    if (copies) return got.device().has_streams() ? copied_on_device(got, got.owner) : copy_released(got);
    if (auto met = check(got, {.writable = options.writable}); !met) return refuse_unmet(obj, met.error());
    std::optional<tensor> kept;
    if (auto ok = tensor::keep(got, got.owner, kept); !ok) raise(ok.error());
    return kept;
}

}  // namespace detail
}  // namespace tenon::py
