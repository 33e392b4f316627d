// src/py/export/dlpack.cpp: the answer to `__dlpack__`, and a tensor in a bare capsule.
#include "all.hpp"

namespace tenon::py {

namespace detail {

/// The keywords of `__dlpack__`; None and absent are the same.
struct dlpack_keywords {
    std::optional<std::intptr_t> stream;
    std::optional<device> where;
    std::optional<bool> copy;
    capsule_kind kind = capsule_kind::legacy;

    [[nodiscard]] bool read(PyObject* const* args, Py_ssize_t positional, PyObject* names,
                            const interpreter& known) noexcept {
        using namespace argument;
        if (positional != 0) {
            PyErr_SetString(PyExc_TypeError, "__dlpack__() takes keyword arguments only");
            return false;
        }
        return read_keywords(args, names, [&](PyObject* name, PyObject* value) {
            if (is_named(name, known.max_version, "max_version")) return read_max_version(value);
            if (is_named(name, known.stream, "stream")) return read_stream(value, stream);
            if (is_named(name, known.dl_device, "dl_device")) return read_device("dl_device", value, where);
            if (is_named(name, known.copy, "copy")) return read_optional_flag("copy", value, copy);
            return unexpected("__dlpack__", name);
        });
    }

private:
    [[nodiscard]] bool read_max_version(PyObject* value) noexcept {
        if (value == Py_None) return true;
        long long pair[2] = {0, 0};
        if (!argument::read_pair("max_version", "None or a (major, minor) pair of integers", value, 0,
                                 std::numeric_limits<std::uint32_t>::max(), pair))
            return false;
        kind = pair[0] == 0 ? capsule_kind::legacy : capsule_kind::versioned;
        return true;
    }
};

/// Makes the consumer's stream wait for the tensor, as its number says; false with an exception set when the
/// number has no meaning there, or the driver fails. -1 asks for nothing: not even a look at the driver.
[[nodiscard]] inline bool order_stream(answer::source s, const tensor_ref& t, PyObject* self,
                                       std::optional<std::intptr_t> stream) noexcept {
    const device where = t.device();
    if (stream == -1) return true;
    if (!where.is_cuda_memory() && !where.is_rocm()) {
        // Other devices have streams by agreement, and we have none.
        if (!stream || !where.is_host_accessible()) return true;
        PyErr_SetString(PyExc_ValueError, "tenon: stream must be None for a tensor in host memory");
        return false;
    }
    return succeeded(check_stream_number(where, stream)) &&
           make_wait(s, t, self, consumer_stream(where, stream));
}

TENON_COLD inline PyObject* no_way_there(device from, device to) noexcept try {
    return raise(errc::refused,
                 sentence({"tenon: dl_device: a tensor on ", name(from), " cannot be exported to ", name(to),
                           "; pass dl_device=None, or move it with the library it came from"}));
} catch (...) {
    return PyErr_NoMemory();
}

/// A copy of host memory on a GPU, which the device has finished with. Memory that may move while others run,
/// unless it `stays_put`, is copied here first.
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
        return raise(refused("copy", "a copy on this device cannot be made here", t.device().type)
                         .with_advice("pass dl_device=(1, 0) for a copy on the CPU, or copy it with the "
                                      "library it came from"),
                     "tenon: ");
    }
    return copied ? new_capsule(*copied, copied->owner(), asked.kind, {.fresh_copy = true}) : nullptr;
}

/// The answer for the tensor `t` of the object `self`, which keeps the memory alive.
[[nodiscard]] inline PyObject* answer_dlpack(answer::source s, const tensor_ref& t, PyObject* self,
                                             const dlpack_keywords& asked, interpreter* here) noexcept {
    const device own = device(tenon::detail::exported_device(t.device(), {}));
    const bool to_host = asked.where == device{};
    const bool as_cuda =
        asked.where && asked.where->is_cuda() && t.device().type == abi::device_code::cuda_managed;
    const bool stays = !asked.where || *asked.where == own || *asked.where == t.device() || as_cuda ||
                       (to_host && t.device().is_host_accessible());
    const bool from_gpu = t.device().has_streams();
    const bool can_be_copied = (to_host && from_gpu) ||
                               (asked.where && asked.where->has_streams() && t.device().is_host_accessible());
    if (!stays && !can_be_copied) return no_way_there(own, *asked.where);
    if (!stays && asked.copy == false) {
        return raise(refused("copy", "the tensor must be copied to get there, and copy=False forbids it")
                         .with_advice("pass copy=None or copy=True"),
                     "tenon: ");
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
        if (!finish_device_work(t.device(), s.lends)) return nullptr;
    } else if (!stays) {
        if (!succeeded(check_stream_number(*asked.where, asked.stream))) return nullptr;
    } else if (!order_stream(s, t, self, stream)) {
        return nullptr;
    }
    if (!stays || asked.copy == true) return export_copy(t, self, s.lends, stream, asked, here);
    if (t.requires_grad() && is_asked_by_guarded_library() && !warn_of_gradient(2)) return nullptr;
    keep_alive owner = keep_object(self, here);
    void* const consumer = consumer_stream(t.device(), asked.stream);
    if (asked.stream != -1 && !gpu::is_same_stream(t.device(), t.stream(), consumer)) {
        watch_torch(*here, t.device());
        owner = gpu::released_late(std::move(owner), t.device());
    }
    return new_capsule(t, owner, asked.kind, {.shown_on = to_host || as_cuda ? asked.where : std::nullopt});
}

TENON_INLINE PyObject* answer::dlpack(source s, PyObject* self, PyObject* const* args, Py_ssize_t positional,
                                      PyObject* names) noexcept {
    interpreter* const here = interpreter::current();
    dlpack_keywords asked;  // read before the tensor: reading them runs code of others
    if (here == nullptr || !asked.read(args, positional, names, *here)) return nullptr;
    acquired room;
    const tensor_ref* const t = s.read(self, room);
    return t != nullptr ? answer_dlpack(s, *t, self, asked, here) : nullptr;
}

/// What the capsule will say (P41).
TENON_INLINE PyObject* answer::dlpack_device(source s, PyObject* self, PyObject*) noexcept {
    acquired room;
    const tensor_ref* const t = s.read(self, room);
    if (t == nullptr) return nullptr;
    const abi::dl_device shown = tenon::detail::exported_device(t->device(), {});
    return Py_BuildValue("(ii)", shown.device_type, shown.device_id);
}

}  // namespace detail

TENON_INLINE PyObject* to_capsule(tensor&& t, capsule_kind kind) noexcept {
    if (interpreter::current() == nullptr || detail::refuse_nothing(t)) return nullptr;
    PyObject* const made = detail::new_capsule(t, t.owner(), kind, {.fresh_copy = t.is_copied()});
    if (made != nullptr) t.reset();
    return made;
}

TENON_INLINE PyObject* to_capsule(result<tensor> t, capsule_kind kind) noexcept {
    if (!t) return raise(t.error(), "tenon: ");
    const detail::taken taken(*t);
    return to_capsule(std::move(*t), kind);
}

}  // namespace tenon::py
