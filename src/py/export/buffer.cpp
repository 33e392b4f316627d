// src/py/export/buffer.cpp: host memory leaves through the buffer protocol.
#include "all.hpp"

namespace tenon::py::detail {

/// Fills `view`, and keeps `self` alive; -1 with BufferError set when the memory cannot be had the way it is
/// asked for. `release_buffer` must follow.
TENON_INLINE int answer::get_buffer(source s, PyObject* self, Py_buffer* view, int flags) noexcept {
    if (view == nullptr) {
        PyErr_SetString(PyExc_BufferError, "tenon: there is no place for the buffer");
        return -1;
    }
    view->obj = nullptr;
    acquired room;
    const tensor_ref* const t = s.read(self, room);
    if (t == nullptr || !finish_device_work(t->device(), s.lends)) return -1;
    const auto refuse = [](const error& e) {
        raise(e, "tenon: ");
        return -1;
    };
    const auto asks = [&](int what) { return (flags & what) == what; };
    if (!t->device().is_host_accessible())
        return refuse(refused("device", "the memory cannot be read on the host, so it has no buffer")
                          .with_advice("use __dlpack__, or a copy on the CPU"));
    const dtype_entry* const known = find_dtype(t->dtype());
    if (known == nullptr || known->buffer_format.empty())
        return refuse(refused("dtype", "the buffer protocol has no format for this element type")
                          .with_advice("use __dlpack__ instead"));
    if (asks(PyBUF_WRITABLE) && t->is_read_only())
        return refuse(refused("flags", "a writable buffer is needed and the tensor is read-only"));
    const bool c_order = t->is_c_contiguous();
    const bool f_order = t->is_f_contiguous();
    if ((asks(PyBUF_C_CONTIGUOUS) && !c_order) || (asks(PyBUF_F_CONTIGUOUS) && !f_order) ||
        (asks(PyBUF_ANY_CONTIGUOUS) && !c_order && !f_order) || (!asks(PyBUF_STRIDES) && !c_order))
        return refuse(refused("strides", "a contiguous buffer is needed and the tensor is strided")
                          .with_advice("make a contiguous copy"));

    const auto rank = static_cast<std::size_t>(t->ndim());
    auto* const axes = static_cast<Py_ssize_t*>(PyMem_Malloc(2 * rank * sizeof(Py_ssize_t)));
    if (axes == nullptr) {
        PyErr_NoMemory();
        return -1;
    }
    const auto item = static_cast<Py_ssize_t>(t->itemsize());
    for (std::size_t i = 0; i < rank; ++i) {
        axes[i] = static_cast<Py_ssize_t>(t->shape(i));
        axes[rank + i] = byte_stride(*t, i);
    }
    // Python judges one axis by its step alone, even where no step is taken.
    if (rank == 1 && axes[0] == 0) axes[1] = item;
    view->buf = address_of(*t);
    view->len = static_cast<Py_ssize_t>(t->nbytes());
    view->itemsize = item;
    view->readonly = t->is_read_only() ? 1 : 0;
    view->ndim = asks(PyBUF_ND) ? t->ndim() : 1;
    view->format = asks(PyBUF_FORMAT) ? const_cast<char*>(known->buffer_format.data()) : nullptr;
    view->shape = asks(PyBUF_ND) && rank != 0 ? axes : nullptr;
    view->strides = asks(PyBUF_STRIDES) && rank != 0 ? axes + rank : nullptr;
    view->suboffsets = nullptr;
    view->internal = axes;
    Py_INCREF(self);
    view->obj = self;
    return 0;
}

TENON_INLINE void answer::release_buffer(source, PyObject*, Py_buffer* view) noexcept {
    PyMem_Free(view->internal);
}

}  // namespace tenon::py::detail
