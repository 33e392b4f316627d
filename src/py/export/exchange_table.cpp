// src/py/export/exchange_table.cpp: the functions of an exchange table of ours: those that are the same for
// every class, and what it answers for the objects of its own.
#include "all.hpp"

namespace tenon::py::detail {

/// Tells the caller of the allocator, which may not want to know; always -1.
TENON_COLD inline int report(const error& e, void* context, set_error_fn set_error) noexcept {
    if (set_error == nullptr) return -1;
    const char* const kind = e.code == errc::no_memory   ? "MemoryError"
                             : e.code == errc::malformed ? "ValueError"
                                                         : "BufferError";
    try {
        const std::string text = sentence({"tenon: ", e.message()});
        set_error(context, kind, text.c_str());
    } catch (...) {
        set_error(context, kind, "tenon: the tensor cannot be allocated");
    }
    return -1;
}

/// The allocator of the table: host memory. Needs no Python, and no thread state.
TENON_INLINE int allocate_managed(abi::dl_tensor* prototype, abi::managed_tensor_versioned** out,
                                  void* context, set_error_fn set_error) noexcept {
    const auto fail = [&](const error& e) { return report(e, context, set_error); };
    if (prototype == nullptr || out == nullptr)
        return fail(malformed("prototype", "there is none, or no place for the result"));
    *out = nullptr;
    if (device(prototype->device) != device{}) {
        return fail(refused("device", "only memory of the CPU can be allocated here",
                            prototype->device.device_type, device{}.type));
    }
    abi::dl_tensor asked = *prototype;
    asked.strides = nullptr;  // not part of the question, and maybe never set
    if (auto ok = tenon::detail::validator::check_arrays(asked); !ok) return fail(ok.error());
    auto made = allocate(dtype(asked.dtype), extents(asked.shape, static_cast<std::size_t>(asked.ndim)));
    if (!made) return fail(made.error());
    auto managed = to_managed(std::move(*made));
    if (!managed) return fail(managed.error());
    *out = *managed;
    return 0;
}

/// A struct of anybody's becomes a Tensor. It is taken over on success alone: what is refused stays with the
/// caller, untouched, and may be released by it.
TENON_INLINE int table_to_object(abi::managed_tensor_versioned* managed, void** out) noexcept {
    interpreter* const here = interpreter::current();
    if (here == nullptr) return -1;
    if (out == nullptr || managed == nullptr) {
        raise(malformed("exchange table", "there is no struct, or no place for the object"), "tenon: ");
        return -1;
    }
    foreign received(managed);
    keep_alive owner = keep_managed(managed, true, here);
    auto taken = tensor::take_as(received, owner);
    received.disown();
    if (!taken) {
        owner.disown();
        raise(taken.error(), "tenon: ");
        return -1;
    }
    tenon::detail::validator::add_marks(*taken, tenon::detail::marks_of(managed));
    PyObject* const made = to_python(std::move(*taken));
    if (made == nullptr) {
        taken->disown();  // still there: it is taken on success alone
        return -1;
    }
    *out = made;
    return 0;
}

/// Work on host memory has no stream; work on other memory of ours is on the default one.
TENON_INLINE int default_stream(std::int32_t, std::int32_t, void** out) noexcept {
    if (out != nullptr) *out = nullptr;
    return 0;
}

/// The tensor of an object of this class; BufferError for any other, and for a null place for the result.
/// Whoever calls got the table from the object's type, but any class may publish a table that it has from
/// another. The table says that work on memory of ours is on the default stream: where it is on another, that
/// one has to wait.
[[nodiscard]] inline const tensor_ref* checked(answer::source s, PyObject* obj, const void* out,
                                               acquired& room) noexcept {
    const interpreter* const here = interpreter::current();
    if (here == nullptr) return nullptr;
    if (out == nullptr)
        return raise(malformed("exchange table", "there is no place for the result"), "tenon: ");
    if (obj == nullptr || !s.is_own(obj, *here)) {
        PyErr_Format(PyExc_BufferError, "tenon: the exchange table is not that of '%.100s' objects",
                     obj != nullptr ? Py_TYPE(obj)->tp_name : "null");
        return nullptr;
    }
    const tensor_ref* const t = s.read(obj, room);
    if (t == nullptr) return nullptr;
    const bool has_streams = t->device().is_cuda_memory() || t->device().is_rocm_memory();
    return !has_streams || make_wait(s, *t, obj, nullptr) ? t : nullptr;
}

TENON_INLINE int answer::table_own(source s, void* obj, abi::managed_tensor_versioned** out) noexcept {
    acquired room;
    const tensor_ref* const t = checked(s, static_cast<PyObject*>(obj), out, room);
    if (t == nullptr) return -1;
    keep_alive owner =
        gpu::released_late(keep_object(static_cast<PyObject*>(obj), interpreter::current_attached()),
                           t->device(), t->stream(), nullptr);
    *out = make_managed<abi::managed_tensor_versioned>(*t, owner);
    if (*out != nullptr) return 0;
    PyErr_NoMemory();
    return -1;
}

TENON_INLINE int answer::table_borrow(source s, void* obj, abi::dl_tensor* out) noexcept {
    acquired room;
    const tensor_ref* const t = checked(s, static_cast<PyObject*>(obj), out, room);
    if (t == nullptr) return -1;
    *out = tenon::detail::exported_tensor(*t, {});
    out->shape = const_cast<std::int64_t*>(t->shape().data());
    out->strides = const_cast<std::int64_t*>(t->strides().data());
    return 0;
}

}  // namespace tenon::py::detail
