// src/py/import/from_python.cpp: any Python object becomes a tensor that is kept: where it is wanted, copied
// if need be.
#include "all.hpp"

namespace tenon::py {

namespace detail {

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
        if (options.writable && t->is_read_only())
            return refuse_unmet(obj, check(*t, {.writable = true}).error());
        return t;
    }
    if (t->device() != to && options.copy == false)
        return refuse_unmet(obj, elsewhere(t->device(), options, true));
    if (auto ok = check_stream_number(to, options.stream); !ok) return refuse_unmet(obj, ok.error());
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

TENON_INLINE std::optional<tensor> from_python(PyObject* obj, const import_options& options) noexcept {
    if (interpreter::current() == nullptr) return std::nullopt;
    return options.to && options.to->has_streams() ? detail::import_to_gpu(obj, options)
                                                   : detail::import_in_place(obj, options);
}

}  // namespace tenon::py
