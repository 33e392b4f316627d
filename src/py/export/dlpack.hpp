// src/py/export/dlpack.hpp: what `__dlpack__` and `__dlpack_device__` of a producer answer.
#pragma once

#include "../import/all.hpp"
#include "make_capsule.hpp"

namespace tenon::py {

namespace detail {

/// Makes the consumer's stream wait for the tensor, as its number says; false with an exception set when the
/// number has no meaning there, or the driver fails. -1 asks for nothing: not even a look at the driver.
[[nodiscard]] inline bool order_stream(const tensor_ref& t, bool stays_put, const gpu::ready_event& ready,
                                       std::optional<std::intptr_t> stream) noexcept {
    const device where = t.device();
    if (stream == -1) return true;
    if (!where.is_cuda_memory() && !where.is_rocm()) {
        // Other devices have streams by agreement, and we have none.
        if (!stream || !where.is_host_accessible()) return true;
        PyErr_SetString(PyExc_ValueError, "tenon: stream must be None for a tensor in host memory");
        return false;
    }
    if (!succeeded(check_stream_number(where, stream))) return false;
    void* const later = consumer_stream(where, stream);
    if (ready.is_captured() || (!ready && t.stream() == later)) return true;
    return succeeded(without_gil_if(stays_put, [&] {
        return ready ? gpu::order_after(where, ready, later) : gpu::order(where, t.stream(), later);
    }));
}

/// The capsule of a memory that `owner` keeps alive, legacy or not; null with an exception set.
[[nodiscard]] inline PyObject* capsule_for(const tensor_ref& t, keep_alive owner, long major,
                                           export_view how) noexcept {
    if (major >= 1) return make_capsule<abi::managed_tensor_versioned>(t, owner, how);
    if (auto ok = can_leave_as<abi::managed_tensor>(t); !ok) {
        raise(ok.error(), "tenon: ");
        return nullptr;
    }
    return make_capsule<abi::managed_tensor>(t, owner, how);
}

TENON_COLD inline PyObject* no_way_there(device from, device to) noexcept try {
    raise(errc::refused, "tenon: dl_device: a tensor on " + name(from) + " cannot be exported to " +
                             name(to) + "; pass dl_device=None, or move it with the library it came from");
    return nullptr;
} catch (...) {
    return PyErr_NoMemory();
}

/// A copy of host memory on a GPU, which the device has finished with. Memory that may move while others run
/// is copied here first.
[[nodiscard]] inline std::optional<tensor> copy_to_gpu(const tensor_ref& t, bool stays_put,
                                                       device to) noexcept {
    if (!finish_device_work(t.device(), stays_put)) return std::nullopt;
    if (stays_put) return unless_failed(without_gil([&] { return gpu::put(t, to, nullptr); }));
    const auto held = copy_held(t);
    return held ? unless_failed(without_gil([&] { return gpu::put(*held, to, nullptr); })) : std::nullopt;
}

/// The answer with a copy in it, made in memory of the driver or of the host. A copy on a GPU is made on
/// `stream`, which waits for the tensor by now; the tensor stays until it is made.
[[nodiscard]] inline PyObject* export_copy(const tensor_ref& t, PyObject* keeper, bool stays_put,
                                           std::optional<std::intptr_t> stream, const dlpack_keywords& asked,
                                           interpreter* here) noexcept {
    const device to = asked.where.value_or(t.device());
    const bool from_gpu = !t.device().is_host_accessible();
    std::optional<tensor> copied;
    if (to == device{} && from_gpu) {
        copied = unless_failed(without_gil_if(stays_put, [&] { return gpu::fetch(t); }));
    } else if (to == device{}) {
        copied = stays_put ? copy_released(t) : copy_held(t);
    } else if (to.has_streams() && t.device() == to) {
        void* const on = consumer_stream(to, stream);
        copied = unless_failed(without_gil_if(stays_put, [&] { return gpu::copy_on_device(t, on); }));
        gpu::released_late(keep_object(keeper, here), to, t.stream(), on).reset();
    } else if (to.has_streams() && !from_gpu) {
        copied = copy_to_gpu(t, stays_put, to);
    } else {
        raise(refused("copy", "a copy on this device cannot be made here", t.device().type)
                  .with_advice("pass dl_device=(1, 0) for a copy on the CPU, or copy it with the library it "
                               "came from"),
              "tenon: ");
    }
    if (!copied) return nullptr;
    return capsule_for(*copied, std::move(copied->owner()), asked.major, {.fresh_copy = true});
}

}  // namespace detail

/// `keeper.__dlpack__(...)` for the tensor `t`, whose memory the object `keeper` keeps alive: a new capsule,
/// or null with an exception set. The keywords have been read before the tensor: reading them runs code of
/// others. `stays_put` says that the memory stays where it is as long as the object lives, whatever runs.
/// `ready` is when the memory is, where `t.stream()` alone does not tell.
[[nodiscard]] inline PyObject* answer_dlpack(const tensor_ref& t, PyObject* keeper, bool stays_put,
                                             const gpu::ready_event& ready, const dlpack_keywords& asked,
                                             interpreter* here) noexcept {
    const device own = device(tenon::detail::exported_device(t.device(), {}));
    const bool to_host = asked.where == device{};
    const bool as_cuda =
        asked.where && asked.where->is_cuda() && t.device().type == abi::device_code::cuda_managed;
    const bool stays = !asked.where || *asked.where == own || *asked.where == t.device() || as_cuda ||
                       (to_host && t.device().is_host_accessible());
    const bool from_gpu = t.device().has_streams();
    const bool can_be_copied = (to_host && from_gpu) ||
                               (asked.where && asked.where->has_streams() && t.device().is_host_accessible());
    if (!stays && !can_be_copied) return detail::no_way_there(own, *asked.where);
    if (!stays && asked.copy == false) {
        raise(refused("copy", "the tensor must be copied to get there, and copy=False forbids it")
                  .with_advice("pass copy=None or copy=True"),
              "tenon: ");
        return nullptr;
    }
    // A copy has to come after the tensor even for a consumer that sees to its own order.
    const auto stream = asked.copy == true && asked.stream == -1 ? std::nullopt : asked.stream;
    // What goes to the host is complete when it is handed out, and so is what comes from there; elsewhere the
    // consumer's stream sees to it.
    if (to_host && !t.device().is_cpu()) {
        if (asked.stream) {
            PyErr_SetString(PyExc_ValueError,
                            "tenon: stream must be None with dl_device=(1, 0): what goes to "
                            "the host is complete when it is handed out");
            return nullptr;
        }
        if (!detail::finish_device_work(t.device(), stays_put)) return nullptr;
    } else if (!stays) {
        if (!detail::succeeded(check_stream_number(*asked.where, asked.stream))) return nullptr;
    } else if (!detail::order_stream(t, stays_put, ready, stream)) {
        return nullptr;
    }
    if (!stays || asked.copy == true) return detail::export_copy(t, keeper, stays_put, stream, asked, here);
    if (t.requires_grad() && detail::is_asked_by_guarded_library() && !detail::warn_of_gradient(2))
        return nullptr;
    export_view how{.as_cpu = to_host};
    if (as_cuda) how.as_device = *asked.where;
    keep_alive owner = detail::keep_object(keeper, here);
    void* const consumer = consumer_stream(t.device(), asked.stream);
    if (asked.stream != -1 && !gpu::is_same_stream(t.device(), t.stream(), consumer)) {
        watch_torch(*here, t.device());
        owner = gpu::released_late(std::move(owner), t.device());
    }
    return detail::capsule_for(t, std::move(owner), asked.major, how);
}

/// `__dlpack_device__()`: what the capsule will say (P41).
[[nodiscard]] inline PyObject* answer_dlpack_device(const tensor_ref& t) noexcept {
    const abi::dl_device shown = tenon::detail::exported_device(t.device(), {});
    return Py_BuildValue("(ii)", shown.device_type, shown.device_id);
}

}  // namespace tenon::py
