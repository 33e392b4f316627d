// src/py/export/array_interface.cpp: what NumPy asks a producer for, and those who took that over:
// `__array__`, `__array_interface__` and `__cuda_array_interface__`.
#include "all.hpp"

namespace tenon::py::detail {

/// The keywords of `__array__`.
struct array_keywords {
    ref type;
    std::optional<bool> copy;

    [[nodiscard]] bool read(PyObject* const* args, Py_ssize_t positional, PyObject* names) noexcept {
        if (positional > 2) {
            PyErr_Format(PyExc_TypeError, "__array__() takes at most 2 arguments (%zd given)", positional);
            return false;
        }
        if (positional > 0) type = ref::borrow(args[0]);
        if (positional > 1 && !argument::read_optional_flag("copy", args[1], copy)) return false;
        return argument::read_keywords(args + positional, names, [&](PyObject* name, PyObject* value) {
            if (PyUnicode_CompareWithASCIIString(name, "copy") == 0)
                return argument::read_optional_flag("copy", value, copy);
            if (PyUnicode_CompareWithASCIIString(name, "dtype") != 0)
                return argument::unexpected("__array__", name);
            type = ref::borrow(value);
            return true;
        });
    }
};

/// For what NumPy cannot have by a buffer (bfloat16, fp8).
TENON_INLINE PyObject* answer::array(source s, PyObject* self, PyObject* const* args, Py_ssize_t positional,
                                     PyObject* names) noexcept {
    interpreter* const here = interpreter::current();
    array_keywords asked;
    // NumPy is looked for first, too: importing it runs anything.
    if (here == nullptr || !asked.read(args, positional, names) || !numpy_abi::functions::find(*here))
        return nullptr;
    acquired room;
    const tensor_ref* const t = s.read(self, room);
    if (t == nullptr || !finish_device_work(t->device(), s.lends)) return nullptr;
    const ref view = ref::take(numpy::to_array(*t, ref::borrow(self), *here));
    if (!view) return nullptr;
    // astype without copying gives the very array back when the type is the one it has.
    ref made = asked.type && asked.type.get() != Py_None
                   ? ref::take(call::method(view.get(), "astype", "OssOO", asked.type.get(), "K", "unsafe",
                                            Py_True, Py_False))
                   : ref::borrow(view.get());
    const bool converted = made && made.get() != view.get();
    if (converted && asked.copy == false) {
        PyErr_SetString(PyExc_ValueError, "tenon: another dtype needs a copy, and copy=False forbids it");
        return nullptr;
    }
    if (made && !converted && asked.copy == true) return call::method(made.get(), "copy", nullptr);
    return made.release();
}

/// "There is no such attribute", so that `hasattr` and `getattr` with a default say the same.
TENON_COLD inline PyObject* no_attribute(const char* name, const char* reason) noexcept {
    PyErr_Format(PyExc_AttributeError, "tenon: no %s: %s", name, reason);
    return nullptr;
}

/// The fields both interfaces have.
[[nodiscard]] inline ref interface_of(const tensor_ref& t, const char* name, void* address) noexcept {
    const dtype_entry* const known = find_dtype(t.dtype());
    if (known == nullptr || known->typestr.empty())
        return ref::take(no_attribute(name, "NumPy has no typestr for the element type"));
    const char order = known->type.itemsize() == 1 ? '|' : tenon::detail::little_endian ? '<' : '>';
    const auto steps = [&](std::size_t i) { return byte_stride(t, i); };
    return ref::take(Py_BuildValue(
        "{s:i,s:N,s:N,s:N,s:(NO)}", "version", 3, "shape", tuple_of(t.shape()), "typestr",
        // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): the texts of the table are literals
        PyUnicode_FromFormat("%c%s", order, known->typestr.data()), "strides",
        t.is_c_contiguous() ? ref::borrow(Py_None).release() : tuple_of_axes(t.shape().size(), steps), "data",
        PyLong_FromVoidPtr(address), t.is_read_only() ? Py_True : Py_False));
}

/// For host memory of any kind, which a device has finished with.
TENON_INLINE PyObject* answer::array_interface(source s, PyObject* self, void*) noexcept {
    acquired room;
    const tensor_ref* const t = s.read(self, room);
    if (t == nullptr) return nullptr;
    if (!t->device().is_host_accessible())
        return no_attribute("__array_interface__", "the memory is not the host's");
    ref made = interface_of(*t, "__array_interface__", address_of(*t));
    return made && finish_device_work(t->device(), s.lends) ? made.release() : nullptr;
}

/// For CUDA and managed memory, with the stream on which it is ready. Where only an event tells, the default
/// stream is made to wait for it: the stream it was recorded on may be gone.
TENON_INLINE PyObject* answer::cuda_array_interface(source s, PyObject* self, void*) noexcept {
    acquired room;
    const tensor_ref* const t = s.read(self, room);
    if (t == nullptr) return nullptr;
    const device where = t->device();
    if (!where.is_cuda() && where.type != abi::device_code::cuda_managed)
        return no_attribute("__cuda_array_interface__", "the memory is not CUDA's");
    // Nothing at all is at address zero here.
    ref made = interface_of(*t, "__cuda_array_interface__", t->empty() ? nullptr : t->data());
    const gpu::ready_event& ready = ready_of(s, self);
    if (!made || (ready && !make_wait(s, *t, self, nullptr))) return nullptr;
    void* const number = ready ? gpu::default_stream(where) : t->stream();
    // For captured work nobody can wait.
    const ref stream = ready.is_captured() ? ref::borrow(Py_None) : ref::take(PyLong_FromVoidPtr(number));
    return stream && call::set_dict_item(made.get(), "stream", stream.get()) == 0 ? made.release() : nullptr;
}

}  // namespace tenon::py::detail
