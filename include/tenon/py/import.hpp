// tenon/py/import.hpp: any Python object becomes a checked tensor, owned or for the length of a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include <tenon/py/acquired.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/tensor/request.hpp>
#include <tenon/tensor/tensor.hpp>
#include "../../../src/gpu/device_memory.hpp"
#include "../../../src/py/import/ladder.hpp"
#include "../../../src/py/import/stream.hpp"
#include "../../../src/py/runtime/copy.hpp"
#include "../../../src/py/runtime/driver.hpp"

namespace tenon::py {

namespace detail {

/// Whatever was acquired, kept, copied or fetched as the options say; nullopt with an exception set.
[[nodiscard]] inline std::optional<tensor> settle(PyObject* obj, acquired& got,
                                                  const import_options& options) noexcept {
    const bool copies = options.copy == true && (!got.is_copied() || got.is_read_only());
    // What the host is to read, the device must have written.
    if ((copies || options.wants_host()) && !finish_device_work(got.device())) return std::nullopt;
    if (options.wants_host() && got.device().has_streams())
        return unless_failed(without_gil([&] { return gpu::fetch(got); }));
    if (copies) {
        if (!got.device().has_streams()) return copy_released(got);
        return copied_on_device(got, got.owner);
    }
    if (options.writable) {
        if (auto met = check(got, {.writable = true}); !met) {
            raise_unmet(met.error(), obj);
            return std::nullopt;
        }
    }
    std::optional<tensor> kept;
    if (auto ok = tensor::keep(got, got.owner, kept); !ok) raise(ok.error());
    return kept;
}

[[nodiscard]] inline std::optional<tensor> import_in_place(PyObject* obj,
                                                           const import_options& options) noexcept {
    acquired got;
    got.owning = true;
    const bool plain =
        !options.to && !options.stream && !options.copy && !options.trust_legacy && !options.for_cuda;
    if (plain ? !acquire(obj, options.writable, got) : !climb(obj, options, options.writable, got))
        return std::nullopt;
    return settle(obj, got, options);
}

/// Imports to a GPU: what is there already as it is, managed memory too, and everything else by a copy that
/// is made here. Producers are not asked to make it: few can.
[[nodiscard]] inline std::optional<tensor> import_to_gpu(PyObject* obj,
                                                         const import_options& options) noexcept {
    const device to = options.to.value_or(device{});
    import_options there = options;
    there.to.reset();
    there.copy.reset();
    there.writable = false;
    there.for_cuda = to.is_cuda();
    auto t = import_in_place(obj, there);
    if (!t) return t;
    if (t->device().type == abi::device_code::cuda_managed && to.is_cuda()) {
        // Streams of one device mean nothing on another.
        if (t->device().id != to.id && !finish_device_work(t->device())) return std::nullopt;
        t->show_on(to);
    }
    if (t->device() == to && options.copy != true) {
        if (options.writable && t->is_read_only()) {
            raise_unmet(check(*t, {.writable = true}).error(), obj);
            return std::nullopt;
        }
        return t;
    }
    if (t->device() != to && options.copy == false) {
        raise_unmet(refused("device", "the data is not on the device asked for, and copy=False was asked for",
                            t->device().type, to.type),
                    obj);
        return std::nullopt;
    }
    if (auto ok = check_stream_number(to, options.stream); !ok) {
        raise_unmet(ok.error(), obj);
        return std::nullopt;
    }
    if (!finish_device_work(t->device())) return std::nullopt;
    if (t->device() == to) return copied_on_device(*t, t->owner());
    void* const stream = options.orders() ? options.stream_handle() : nullptr;
    return unless_failed(without_gil([&] {
        if (t->device().is_host_accessible()) return gpu::put(*t, to, stream);
        auto fetched = gpu::fetch(*t);  // by way of the host: the two need not see each other
        return fetched ? gpu::put(*fetched, to, stream) : std::move(fetched);
    }));
}

}  // namespace detail

/// Imports any object that speaks a tensor protocol, or a DLPack capsule, and keeps its memory alive. Null
/// with a Python exception set on failure: the producer's own, unchanged, or one that lists what was tried;
/// for PyTorch's tensors without plain memory one that says so, and PyTorch's own is its cause.
/// Needs an attached thread state; the tensor may be dropped on any thread, with or without one.
[[nodiscard]] inline std::optional<tensor> from_python(PyObject* obj,
                                                       const import_options& options = {}) noexcept {
    if (interpreter::current() == nullptr) return std::nullopt;
    return options.to && options.to->has_streams() ? detail::import_to_gpu(obj, options)
                                                   : detail::import_in_place(obj, options);
}

/// Imports for the length of one call: `fn(const tensor_ref&)` runs if the object is a tensor that meets
/// `wanted`. Neither the reference nor anything it points to may be kept.
///
/// `fn` returns a pointer (null then means that an exception is set, as for any C function of Python) and so
/// does this; or nothing, and this returns whether it ran. For a PyTorch tensor or a NumPy array whose type
/// has been seen before there is no allocation and no Python call.
template <class Fn>
TENON_HOT inline auto borrow(PyObject* obj, const request& wanted, Fn&& fn) {
    using R = std::invoke_result_t<Fn&, const tensor_ref&>;
    static_assert(std::is_pointer_v<R> || std::is_void_v<R>,
                  "py::borrow: the function must return a pointer or nothing");
    using answer = std::conditional_t<std::is_void_v<R>, bool, R>;
    acquired got;
    if (!detail::borrow_numpy(obj, got) && !detail::acquire(obj, wanted.writable, got)) [[unlikely]]
        return answer{};
    if (auto met = check(got, wanted); !met) [[unlikely]] {
        detail::raise_unmet(met.error(), obj);
        return answer{};
    }
    if constexpr (std::is_void_v<R>) {
        fn(static_cast<const tensor_ref&>(got));
        return true;
    } else {
        return fn(static_cast<const tensor_ref&>(got));
    }
}

}  // namespace tenon::py
