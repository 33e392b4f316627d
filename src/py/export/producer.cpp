// src/py/export/producer.cpp: a class of the user's own is given every protocol.
#include "all.hpp"

namespace tenon::py::detail {

TENON_INLINE const tensor_ref* holds_nothing(PyObject* self) noexcept {
    PyErr_Format(PyExc_ValueError, "tenon: this '%.100s' object holds nothing to export",
                 Py_TYPE(self)->tp_name);
    return nullptr;
}

TENON_INLINE const tensor_ref* admit_described(PyObject* self, const tensor_info& info,
                                               acquired& room) noexcept try {
    auto ok = info.check();
    if (ok) ok = room.admit({info.to_abi(), info.flags(), {abi::dlpack_major, abi::dlpack_minor}});
    if (ok) room.set_stream(info.stream());
    if (ok) return &room;
    return raise(ok.error(), sentence({"tenon: describe() of '", Py_TYPE(self)->tp_name, "': "}));
} catch (...) {
    raise_caught();
    return nullptr;
}

TENON_INLINE bool has_buffer_function(PyObject* obj, getbufferproc function) noexcept {
    PyObject* const mro = Py_TYPE(obj)->tp_mro;
    for (Py_ssize_t i = 0; mro != nullptr && i < PyTuple_GET_SIZE(mro); ++i) {
        const PyBufferProcs* const procs =
            reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i))->tp_as_buffer;
        if (procs != nullptr && procs->bf_getbuffer == function) return true;
    }
    return false;
}

/// Fills the tables in. They are the class's for good.
///
/// A method's text begins with the signature that `inspect` reads, then has the one with types.
inline void fill_tables(producer_tables& t) noexcept {
    t.methods = {{
        {"__dlpack__", as_method(t.dlpack), METH_FASTCALL | METH_KEYWORDS,
         "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
         "__dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None, "
         "dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> typing.Any\n\n"
         "Export as a DLPack capsule over the same memory."},
        {"__dlpack_device__", t.dlpack_device, METH_NOARGS,
         "__dlpack_device__($self, /)\n--\n\n__dlpack_device__(self) -> tuple[int, int]\n\n"
         "The device as a (type, id) pair."},
        {"__array__", as_method(t.array), METH_FASTCALL | METH_KEYWORDS,
         "__array__($self, /, dtype=None, copy=None)\n--\n\n"
         "__array__(self, dtype: typing.Any = None, copy: bool | None = None) -> typing.Any\n\n"
         "The same memory as a numpy.ndarray."},
        {"__arrow_c_schema__", t.arrow_schema, METH_NOARGS,
         "__arrow_c_schema__($self, /)\n--\n\n__arrow_c_schema__(self) -> typing.Any\n\n"
         "The element type as a capsule of Arrow's."},
        {"__arrow_c_array__", as_method(t.arrow_array), METH_FASTCALL | METH_KEYWORDS,
         "__arrow_c_array__($self, /, requested_schema=None)\n--\n\n"
         "__arrow_c_array__(self, requested_schema: typing.Any = None) -> tuple[typing.Any, typing.Any]\n\n"
         "The same memory as an Arrow array, if it has one axis without gaps: two capsules."},
        {"__arrow_c_device_array__", as_method(t.arrow_device_array), METH_FASTCALL | METH_KEYWORDS,
         "__arrow_c_device_array__($self, /, requested_schema=None, **kwargs)\n--\n\n"
         "__arrow_c_device_array__(self, requested_schema: typing.Any = None, **kwargs: typing.Any)"
         " -> tuple[typing.Any, typing.Any]\n\nThe same on any device."},
    }};
    t.attributes = {{
        {"__array_interface__", t.array_interface, nullptr, "NumPy's array interface, for host memory.",
         nullptr},
        {"__cuda_array_interface__", t.cuda_array_interface, nullptr,
         "The CUDA array interface, for CUDA memory.", nullptr},
    }};
    t.exchange = {{{abi::dlpack_major, abi::dlpack_minor}, nullptr},
                  &allocate_managed,
                  t.table_own,
                  &table_to_object,
                  t.table_borrow,
                  &default_stream};
}

/// The signatures of the class's methods as the binders' functions have theirs: in the text alone, where
/// pybind11-stubgen looks when `inspect` knows none.
inline void type_signatures(producer_tables& t) noexcept {
    constexpr std::string_view end = "--\n\n";
    for (PyMethodDef& m : t.methods) m.ml_doc += std::string_view(m.ml_doc).find(end) + end.size();
}

/// The method that stands for a slot, as `model` has it but for its text: subclasses have the slots of the
/// methods they inherit.
[[nodiscard]] inline bool add_slot_method(PyTypeObject* type, PyTypeObject& model, const char* name,
                                          const char* doc, wrapperbase& room, void* function) noexcept {
    const ref known = ref::take(call::attr(reinterpret_cast<PyObject*>(&model), name));
    if (!known) return false;
    room = *reinterpret_cast<PyWrapperDescrObject*>(known.get())->d_base;
    room.doc = doc;
    return add_to_type(type, name, ref::take(PyDescr_NewWrapper(type, &room, function)));
}

/// The buffer protocol is by methods, too, since 3.12.
[[nodiscard]] inline bool add_buffer_methods(PyTypeObject* type, producer_tables& t) noexcept {
#if PY_VERSION_HEX >= 0x030C0000
    return add_slot_method(type, PyByteArray_Type, "__buffer__",
                           "__buffer__(self, flags: int, /) -> memoryview\n\nThe same memory as a buffer.",
                           t.slot_methods[0], reinterpret_cast<void*>(t.buffer.bf_getbuffer)) &&
           add_slot_method(type, PyByteArray_Type, "__release_buffer__",
                           "__release_buffer__(self, buffer: memoryview, /) -> None\n\nLets go of a buffer.",
                           t.slot_methods[1], reinterpret_cast<void*>(t.buffer.bf_releasebuffer));
#else
    static_cast<void>(type), static_cast<void>(t);
    return true;
#endif
}

/// int() and float() of a class that has neither of its own: its buffer would be read as text.
[[nodiscard]] inline bool add_numbers(PyTypeObject* type, producer_tables& t) noexcept {
    if (type->tp_as_number == nullptr) type->tp_as_number = &t.numbers;
    PyNumberMethods& own = *type->tp_as_number;
    const bool is_bases = type->tp_base != nullptr && type->tp_base->tp_as_number == &own;
    if (is_bases || own.nb_index != nullptr) return true;
    const auto add = [&](unaryfunc& slot, unaryfunc ours, const char* name, const char* doc,
                         wrapperbase& room) {
        if (slot != nullptr) return true;
        slot = ours;
        return add_slot_method(type, PyLong_Type, name, doc, room, reinterpret_cast<void*>(ours));
    };
    return add(own.nb_int, t.as_int, "__int__", "__int__(self) -> int\n\nThe only element.",
               t.slot_methods[2]) &&
           add(own.nb_float, t.as_float, "__float__", "__float__(self) -> float\n\nThe only element.",
               t.slot_methods[3]);
}

TENON_INLINE bool add_protocols(PyTypeObject* type, producer_tables& t) noexcept {
    fill_tables(t);
    for (PyMethodDef& m : t.methods)
        if (!add_to_type(type, m.ml_name, ref::take(PyDescr_NewMethod(type, &m)))) return false;
    for (PyGetSetDef& g : t.attributes)
        if (!add_to_type(type, g.name, ref::take(PyDescr_NewGetSet(type, &g)))) return false;
    if (!add_to_type(type, "__dlpack_c_exchange_api__",
                     ref::take(PyCapsule_New(&t.exchange, capsule_exchange_api, nullptr))))
        return false;
    if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0) {
        type->tp_as_buffer = &reinterpret_cast<PyHeapTypeObject*>(type)->as_buffer;
        *type->tp_as_buffer = t.buffer;
    } else {
        type->tp_as_buffer = &t.buffer;
    }
    const bool done = add_buffer_methods(type, t) && add_numbers(type, t);
    PyType_Modified(type);
    return done;
}

/// Only a class that nobody has seen as it was can be changed: TypeError otherwise.
[[nodiscard]] inline bool may_become_producer(PyTypeObject* type) noexcept {
    const ref own = ref::take(call::method(reinterpret_cast<PyObject*>(type), "__subclasses__", nullptr));
    if (!own) return false;
    if (PyList_Check(own.get()) && PyList_GET_SIZE(own.get()) != 0) {
        PyErr_Format(PyExc_TypeError,
                     "tenon: '%.100s' has subclasses already; call make_producer before it is derived from",
                     type->tp_name);
        return false;
    }
    const interpreter* const here = interpreter::current();
    if (here == nullptr) return false;
    if (!ref::take(call::type_attr(type, here->exchange_api))) return true;
    PyErr_Format(PyExc_TypeError, "tenon: '%.100s' is a producer already", type->tp_name);
    return false;
}

/// Whether objects of the type can have a `boxed` value in them: as large as that, and of a class that no
/// binder has made, which would put something else there.
[[nodiscard]] inline bool may_be_boxed(PyTypeObject* type, std::size_t size) noexcept {
    if (Py_IS_TYPE(reinterpret_cast<PyObject*>(type), &PyType_Type) &&
        type->tp_basicsize == static_cast<Py_ssize_t>(size) && type->tp_itemsize == 0)
        return true;
    PyErr_Format(PyExc_TypeError,
                 "tenon: objects of '%.100s' are not tenon::py::boxed; pass make_producer a function that "
                 "finds the value in them",
                 type->tp_name);
    return false;
}

TENON_INLINE bool become_producer(PyTypeObject* type, producer_tables& tables,
                                  std::size_t boxed_size) noexcept {
    if (interpreter::current() == nullptr || (boxed_size != 0 && !may_be_boxed(type, boxed_size)) ||
        !may_become_producer(type) || !add_protocols(type, tables))
        return false;
    type_signatures(tables);
    return true;
}

}  // namespace tenon::py::detail
