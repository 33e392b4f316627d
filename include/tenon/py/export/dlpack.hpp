// tenon/py/export/dlpack.hpp: what `__dlpack__` and `__dlpack_device__` of a producer answer.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include <tenon/core/allocate.hpp>
#include <tenon/core/cuda_driver.hpp>
#include <tenon/core/managed.hpp>
#include <tenon/core/tensor.hpp>
#include <tenon/py/acquired.hpp>
#include <tenon/py/arguments.hpp>
#include <tenon/py/copy.hpp>
#include <tenon/py/driver.hpp>
#include <tenon/py/interpreter.hpp>
#include <tenon/py/make_capsule.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>

namespace tenon::py {

namespace detail {

/// Makes the consumer's stream wait for the tensor, as its number says; false with an exception set when the
/// number has no meaning there, or the driver fails.
[[nodiscard]] inline bool order_stream(device where, std::optional<std::intptr_t> stream) noexcept {
    const auto wrong = [](const char* text) {
        PyErr_SetString(PyExc_ValueError, text);
        return false;
    };
    if (stream == -1) return true;  // the consumer sees to it: not even a look at the driver
    if (where.is_cpu() || where.type == abi::device_code::rocm_host)
        return !stream || wrong("tenon: stream must be None for a tensor in host memory");
    if (where.is_rocm()) {
        if (stream == 1 || stream == 2)
            return wrong("tenon: stream must be None, -1, 0 or a handle on ROCm; 1 and 2 mean nothing there");
        if (!stream || *stream == 0) return true;  // the default stream, as below
        PyErr_SetString(PyExc_BufferError,
                        "tenon: a ROCm stream cannot be made to wait here; pass stream=-1 and synchronize");
        return false;
    }
    const bool is_cuda = where.is_cuda() || where.type == abi::device_code::cuda_host ||
                         where.type == abi::device_code::cuda_managed;
    if (!is_cuda) return true;  // streams by agreement, and we have none
    if (stream == 0)
        return wrong(
            "tenon: stream=0 is ambiguous on CUDA; pass 1 (legacy default), 2 (per-thread default) "
            "or a handle");
    if (stream && *stream < 0) return wrong("tenon: stream is neither -1 nor a handle");
    // What is queued there comes after everything on the default stream in any case.
    if (!stream || *stream == cuda_api::legacy_default_stream) return true;
    const cuda_api::driver* const driver = cuda_api::driver::get();
    if (driver == nullptr) {
        PyErr_SetString(PyExc_BufferError,
                        "tenon: the stream cannot be made to wait, because the CUDA driver cannot be loaded; "
                        "pass stream=-1 and synchronize");
        return false;
    }
    const auto waits = ask_driver(
        *driver, [&](const cuda_api::driver& d) { return d.wait_for_default_stream(where.id, *stream); });
    if (!waits) raise(waits.error(), "tenon: ");
    return waits.has_value();
}

/// A compact copy of CUDA memory on the host; nullopt with an exception set on failure. All the memory
/// between the first and the last element is fetched at once, and put in order here.
[[nodiscard]] inline std::optional<tensor> fetch_from_cuda(const tensor_ref& t) noexcept {
    const auto fail = [](const error& e) -> std::optional<tensor> {
        raise(e, "tenon: ");
        return std::nullopt;
    };
    if (t.empty()) {
        auto made = allocate(t.dtype(), t.shape(), t.is_subbyte_padded());
        return made ? std::optional<tensor>(std::move(*made)) : fail(made.error());
    }
    const cuda_api::driver* const driver = cuda_api::driver::get();
    if (driver == nullptr)
        return fail(refused("dl_device", "the CUDA driver cannot be loaded, so nothing can be copied"));
    const auto span = touched_span(t.shape(), t.strides());
    if (!span) return fail(refused("strides", "the elements lie too far apart"));
    const bool packed = t.dtype().is_subbyte() && !t.is_subbyte_padded();
    if (packed && !t.is_c_contiguous())
        return fail(refused("strides", "packed sub-byte elements can only be copied when contiguous"));
    const std::int64_t bytes = packed ? t.nbytes() : (span->high - span->low + 1) * t.itemsize();
    auto room = allocate(dtype_of<std::uint8_t>, axes(bytes));
    if (!room) return fail(room.error());
    const auto* const lowest = static_cast<const std::byte*>(t.data()) + span->low * t.itemsize();
    const auto fetched = ask_driver(*driver, [&](const cuda_api::driver& d) {
        return d.copy_to_host(t.device().id, room->data(), lowest, static_cast<std::size_t>(bytes));
    });
    if (!fetched) return fail(fetched.error());
    tensor_info info = tensor_info::strided(room->data(), t.dtype(), t.shape(), t.strides())
                           .with_byte_offset(static_cast<std::uint64_t>(-span->low * t.itemsize()));
    if (t.is_subbyte_padded()) info = info.padded();
    auto there = tensor::own(info, std::move(room->owner()));
    if (!there) return fail(there.error());
    if (there->is_c_contiguous()) return std::move(*there);
    return copy_released(*there);
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

/// The answer with a copy in it.
[[nodiscard]] inline PyObject* export_copy(const tensor_ref& t, bool pinned,
                                           const dlpack_keywords& asked) noexcept {
    const bool on_host = t.device().is_host_accessible();
    // Copies are made in plain host memory: where another kind is meant, they would not be where they should.
    if (asked.where.value_or(t.device()) != device{}) {
        raise(refused("copy", "a copy on this device cannot be made here", t.device().type)
                  .with_advice("pass dl_device=(1, 0) for a copy on the CPU, or copy it with the library it "
                               "came from"),
              "tenon: ");
        return nullptr;
    }
    std::optional<tensor> copied = !on_host ? fetch_from_cuda(t) : pinned ? copy_released(t) : copy_held(t);
    if (!copied) return nullptr;
    return capsule_for(*copied, std::move(copied->owner()), asked.major, {.fresh_copy = true});
}

}  // namespace detail

/// `keeper.__dlpack__(...)` for the tensor `t`, whose memory the object `keeper` keeps alive: a new capsule,
/// or null with an exception set. The keywords have been read before the tensor: reading them runs code of
/// others. `pinned` says that the memory stays where it is as long as the object lives, whatever runs.
[[nodiscard]] inline PyObject* answer_dlpack(const tensor_ref& t, PyObject* keeper, bool pinned,
                                             const dlpack_keywords& asked, interpreter* here) noexcept {
    const device own = device(tenon::detail::exported_device(t.device(), {}));
    const bool to_host = asked.where == device{};
    const bool stays = !asked.where || *asked.where == own || *asked.where == t.device() ||
                       (to_host && t.device().is_host_accessible());
    if (!stays && !(to_host && t.device().is_cuda())) return detail::no_way_there(own, *asked.where);
    if (!stays && asked.copy == false) {
        raise(refused("copy", "the tensor must be copied to get there, and copy=False forbids it")
                  .with_advice("pass copy=None or copy=True"),
              "tenon: ");
        return nullptr;
    }
    // What goes to the host is complete when it is handed out; elsewhere the consumer's stream sees to it.
    if (to_host && !t.device().is_cpu()) {
        if (asked.stream) {
            PyErr_SetString(PyExc_ValueError,
                            "tenon: stream must be None with dl_device=(1, 0): what goes to "
                            "the host is complete when it is handed out");
            return nullptr;
        }
        if (!detail::finish_device_work(t.device())) return nullptr;
    } else if (!detail::order_stream(t.device(), asked.stream)) {
        return nullptr;
    }
    if (!stays || asked.copy == true) return detail::export_copy(t, pinned, asked);
    return detail::capsule_for(t, detail::keep_object(keeper, here), asked.major, {.as_cpu = to_host});
}

/// `__dlpack_device__()`: what the capsule will say (P41).
[[nodiscard]] inline PyObject* answer_dlpack_device(const tensor_ref& t) noexcept {
    const abi::dl_device shown = tenon::detail::exported_device(t.device(), {});
    return Py_BuildValue("(ii)", shown.device_type, shown.device_id);
}

}  // namespace tenon::py
