// src/py/export/protocols.cpp: every protocol of a class of producers, each after how its objects are read.
#include "all.hpp"

namespace tenon::py::detail {

/// The keywords of `__array__`.
struct array_keywords {
    ref type;
    std::optional<bool> copy;

    [[nodiscard]] bool read(PyObject* const* args, Py_ssize_t positional, PyObject* names,
                            const interpreter& known) noexcept {
        if (positional > 2) {
            PyErr_Format(PyExc_TypeError, "__array__() takes at most 2 arguments (%zd given)", positional);
            return false;
        }
        if (positional > 0) type = ref::borrow(args[0]);
        if (positional > 1 && !argument::read_optional_flag("copy", args[1], copy)) return false;
        const Py_ssize_t count = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
        for (Py_ssize_t i = 0; i < count; ++i) {
            PyObject* const name = PyTuple_GET_ITEM(names, i);
            PyObject* const value = args[positional + i];
            if (PyUnicode_CompareWithASCIIString(name, "dtype") == 0)
                type = ref::borrow(value);
            else if (!argument::is_named(name, known.copy, "copy"))
                return argument::unexpected("__array__", name);
            else if (!argument::read_optional_flag("copy", value, copy))
                return false;
        }
        if (type && type.get() == Py_None) type = ref();
        return true;
    }
};

/// `keeper.__array__(dtype=None, copy=None)`, for what NumPy cannot have by a buffer (bfloat16, fp8).
[[nodiscard]] inline PyObject* answer_array(const tensor_ref& t, PyObject* keeper,
                                            const array_keywords& asked, interpreter& here) noexcept {
    const ref view = ref::take(numpy::to_array(t, keeper, here));
    if (!view) return nullptr;
    // astype without copying gives the very array back when the type is the one it has.
    ref made = asked.type ? ref::take(call::method(view.get(), "astype", "OssOO", asked.type.get(), "K",
                                                   "unsafe", Py_True, Py_False))
                          : ref::borrow(view.get());
    const bool converted = made && made.get() != view.get();
    if (converted && asked.copy == false) {
        PyErr_SetString(PyExc_ValueError, "tenon: another dtype needs a copy, and copy=False forbids it");
        return nullptr;
    }
    if (made && !converted && asked.copy == true) return call::method(made.get(), "copy", nullptr);
    return made.release();
}

[[nodiscard]] TENON_PRIVATE inline const gpu::ready_event& ready_of(answer::source s,
                                                                    PyObject* self) noexcept {
    static const gpu::ready_event none;
    return s.ready != nullptr ? s.ready(self) : none;
}

TENON_INLINE PyObject* answer::dlpack(source s, PyObject* self, PyObject* const* args, Py_ssize_t positional,
                                      PyObject* names) noexcept {
    interpreter* const here = interpreter::current();
    dlpack_keywords asked;
    if (here == nullptr || !read_dlpack_keywords(*here, args, positional, names, asked)) return nullptr;
    acquired room;
    const tensor_ref* const t = s.read(self, room);
    return t != nullptr ? answer_dlpack(*t, self, s.lends, ready_of(s, self), asked, here) : nullptr;
}
TENON_INLINE PyObject* answer::array(source s, PyObject* self, PyObject* const* args, Py_ssize_t positional,
                                     PyObject* names) noexcept {
    interpreter* const here = interpreter::current();
    array_keywords asked;
    // NumPy is looked for first, too: importing it runs anything.
    if (here == nullptr || !asked.read(args, positional, names, *here) || !numpy_abi::functions::find(*here))
        return nullptr;
    acquired room;
    const tensor_ref* const t = s.read(self, room);
    if (t == nullptr || !finish_device_work(t->device(), s.lends)) return nullptr;
    return answer_array(*t, self, asked, *here);
}
TENON_INLINE PyObject* answer::dlpack_device(source s, PyObject* self, PyObject*) noexcept {
    acquired room;
    const tensor_ref* const t = s.read(self, room);
    return t != nullptr ? answer_dlpack_device(*t) : nullptr;
}
TENON_INLINE PyObject* answer::array_interface(source s, PyObject* self, void*) noexcept {
    acquired room;
    const tensor_ref* const t = s.read(self, room);
    return t != nullptr ? answer_array_interface(*t, s.lends) : nullptr;
}
TENON_INLINE PyObject* answer::cuda_array_interface(source s, PyObject* self, void*) noexcept {
    acquired room;
    const tensor_ref* const t = s.read(self, room);
    return t != nullptr ? answer_cuda_array_interface(*t, s.lends, ready_of(s, self)) : nullptr;
}
TENON_INLINE PyObject* answer::arrow_schema(source s, PyObject* self, PyObject*) noexcept {
    acquired room;
    const tensor_ref* const t = s.read(self, room);
    return t != nullptr ? answer_arrow_schema(*t) : nullptr;
}
TENON_INLINE PyObject* answer::arrow_array(source s, PyObject* self, PyObject* const* args,
                                           Py_ssize_t positional, PyObject* names) noexcept {
    interpreter* const here = interpreter::current();
    if (here == nullptr || !arrow_keywords::read("__arrow_c_array__", false, args, positional, names))
        return nullptr;
    acquired room;
    const tensor_ref* const t = s.read(self, room);
    return t != nullptr ? answer_arrow_array(*t, self, s.lends, here) : nullptr;
}
TENON_INLINE PyObject* answer::arrow_device_array(source s, PyObject* self, PyObject* const* args,
                                                  Py_ssize_t positional, PyObject* names) noexcept {
    interpreter* const here = interpreter::current();
    if (here == nullptr || !arrow_keywords::read("__arrow_c_device_array__", true, args, positional, names))
        return nullptr;
    acquired room;
    const tensor_ref* const t = s.read(self, room);
    return t != nullptr ? answer_arrow_device_array(*t, self, s.lends, here) : nullptr;
}
TENON_INLINE int answer::get_buffer(source s, PyObject* self, Py_buffer* view, int flags) noexcept {
    acquired room;
    if (view == nullptr) {
        PyErr_SetString(PyExc_BufferError, "tenon: there is no place for the buffer");
        return -1;
    }
    view->obj = nullptr;
    const tensor_ref* const t = s.read(self, room);
    if (t == nullptr || !finish_device_work(t->device(), s.lends)) return -1;
    return answer_get_buffer(*t, self, view, flags);
}
TENON_INLINE void answer::release_buffer(source, PyObject*, Py_buffer* view) noexcept {
    answer_release_buffer(view);
}

TENON_INLINE PyObject* answer::as_int(source s, PyObject* self) noexcept {
    acquired room;
    const tensor_ref* const t = s.read(self, room);
    return t != nullptr ? answer_int(*t, s.lends) : nullptr;
}
TENON_INLINE PyObject* answer::as_float(source s, PyObject* self) noexcept {
    acquired room;
    const tensor_ref* const t = s.read(self, room);
    return t != nullptr ? answer_float(*t, s.lends) : nullptr;
}

TENON_INLINE void fill_tables(producer_tables& t, bool lends) noexcept {
    const PyMethodDef methods[] = {
        {"__dlpack__", as_method(t.dlpack), METH_FASTCALL | METH_KEYWORDS,
         "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
         "Export as a DLPack capsule over the same memory."},
        {"__dlpack_device__", t.dlpack_device, METH_NOARGS,
         "__dlpack_device__($self, /)\n--\n\nThe device as a (type, id) pair."},
        {"__array__", as_method(t.array), METH_FASTCALL | METH_KEYWORDS,
         "__array__($self, /, dtype=None, copy=None)\n--\n\nThe same memory as a numpy.ndarray."},
        {"__arrow_c_schema__", t.arrow_schema, METH_NOARGS,
         "__arrow_c_schema__($self, /)\n--\n\nThe element type as a capsule of Arrow's."},
        {"__arrow_c_array__", as_method(t.arrow_array), METH_FASTCALL | METH_KEYWORDS,
         "__arrow_c_array__($self, /, requested_schema=None)\n--\n\n"
         "The same memory as an Arrow array, if it has one axis without gaps: two capsules."},
        {"__arrow_c_device_array__", as_method(t.arrow_device_array), METH_FASTCALL | METH_KEYWORDS,
         "__arrow_c_device_array__($self, /, requested_schema=None, **kwargs)\n--\n\n"
         "The same on any device."},
        {nullptr, nullptr, 0, nullptr},
    };
    const PyGetSetDef attributes[] = {
        {"__array_interface__", t.array_interface, nullptr, "NumPy's array interface, for host memory.",
         nullptr},
        {"__cuda_array_interface__", t.cuda_array_interface, nullptr,
         "The CUDA array interface, for CUDA memory.", nullptr},
        {nullptr, nullptr, nullptr, nullptr, nullptr},
    };
    static_assert(sizeof methods == sizeof t.methods && sizeof attributes == sizeof t.attributes);
    std::copy(std::begin(methods), std::end(methods), t.methods);
    std::copy(std::begin(attributes), std::end(attributes), t.attributes);
    t.buffer = {t.get_buffer, t.release_buffer};
    t.exchange = {{{abi::dlpack_major, abi::dlpack_minor}, nullptr},
                  &allocate_managed,
                  t.table_own,
                  &table_to_object,
                  lends ? t.table_borrow : nullptr,
                  &default_stream};
}

TENON_INLINE bool publish_table(PyTypeObject* type, const producer_tables& tables) noexcept {
    auto* const table = const_cast<abi::exchange_api*>(&tables.exchange);
    return add_to_type(type, "__dlpack_c_exchange_api__",
                       ref::take(PyCapsule_New(table, capsule_exchange_api, nullptr)));
}

}  // namespace tenon::py::detail
