// src/py/export/exchange_table.cpp: what an exchange table of ours answers for the objects of its class.
#include "all.hpp"

namespace tenon::py::detail {

/// The table says that work on memory of ours is on the default stream: where it is on another, that one
/// has to wait.
[[nodiscard]] inline bool is_ready_by_default(answer::source s, const tensor_ref& t, PyObject* obj) noexcept {
    const device where = t.device();
    if (!where.is_cuda_memory() && !where.is_rocm_memory()) return true;
    const gpu::ready_event& ready = ready_of(s, obj);
    if (ready.is_captured()) return true;
    if (ready) return succeeded(without_gil([&] { return gpu::order_after(where, ready, nullptr); }));
    if (t.stream() == gpu::default_stream(where)) return true;
    return succeeded(without_gil_if(s.lends, [&] { return gpu::order(where, t.stream(), nullptr); }));
}

/// The tensor of an object of this class; BufferError for any other, and for a null place for the result.
/// Whoever calls got the table from the object's type, but any class may publish a table that it has from
/// another.
[[nodiscard]] inline const tensor_ref* checked(answer::source s, PyObject* obj, const void* out,
                                               acquired& room, const interpreter& here) noexcept {
    if (out == nullptr)
        return raise(malformed("exchange table", "there is no place for the result"), "tenon: ");
    if (obj == nullptr || !s.is_own(obj, here)) {
        PyErr_Format(PyExc_BufferError, "tenon: the exchange table is not that of '%.100s' objects",
                     obj != nullptr ? Py_TYPE(obj)->tp_name : "null");
        return nullptr;
    }
    const tensor_ref* const t = s.read(obj, room);
    return t != nullptr && is_ready_by_default(s, *t, obj) ? t : nullptr;
}

TENON_INLINE int answer::table_own(source s, void* obj, abi::managed_tensor_versioned** out) noexcept {
    interpreter* const here = interpreter::current();
    if (here == nullptr) return -1;
    acquired room;
    const tensor_ref* const t = checked(s, static_cast<PyObject*>(obj), out, room, *here);
    if (t == nullptr) return -1;
    keep_alive owner =
        gpu::released_late(keep_object(static_cast<PyObject*>(obj), here), t->device(), t->stream(), nullptr);
    *out = make_managed<abi::managed_tensor_versioned>(*t, owner);
    if (*out != nullptr) return 0;
    PyErr_NoMemory();
    return -1;
}

TENON_INLINE int answer::table_borrow(source s, void* obj, abi::dl_tensor* out) noexcept {
    interpreter* const here = interpreter::current();
    if (here == nullptr) return -1;
    acquired room;
    const tensor_ref* const t = checked(s, static_cast<PyObject*>(obj), out, room, *here);
    if (t == nullptr) return -1;
    *out = tenon::detail::exported_tensor(*t, {});
    out->shape = const_cast<std::int64_t*>(t->shape().data());
    out->strides = const_cast<std::int64_t*>(t->strides().data());
    return 0;
}

}  // namespace tenon::py::detail
