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
    return raise(ok.error(), std::string("tenon: describe() of '") + Py_TYPE(self)->tp_name + "': ");
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

/// The method that stands for a slot, as `model` has it: subclasses have the slots of the methods they
/// inherit.
[[nodiscard]] inline bool add_slot_method(PyTypeObject* type, PyTypeObject& model, const char* name,
                                          void* function) noexcept {
    const ref known = ref::take(call::attr(reinterpret_cast<PyObject*>(&model), name));
    if (!known) return false;
    auto* const base = reinterpret_cast<PyWrapperDescrObject*>(known.get())->d_base;
    return add_to_type(type, name, ref::take(PyDescr_NewWrapper(type, base, function)));
}

/// The buffer protocol is by methods, too, since 3.12.
[[nodiscard]] inline bool add_buffer_methods(PyTypeObject* type, const producer_tables& t) noexcept {
#if PY_VERSION_HEX >= 0x030C0000
    return add_slot_method(type, PyByteArray_Type, "__buffer__", reinterpret_cast<void*>(t.get_buffer)) &&
           add_slot_method(type, PyByteArray_Type, "__release_buffer__",
                           reinterpret_cast<void*>(t.release_buffer));
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
    if (own.nb_int == nullptr) {
        own.nb_int = t.as_int;
        if (!add_slot_method(type, PyLong_Type, "__int__", reinterpret_cast<void*>(own.nb_int))) return false;
    }
    if (own.nb_float == nullptr) {
        own.nb_float = t.as_float;
        if (!add_slot_method(type, PyLong_Type, "__float__", reinterpret_cast<void*>(own.nb_float)))
            return false;
    }
    return true;
}

[[nodiscard]] inline bool add_protocols(PyTypeObject* type, producer_tables& t) noexcept {
    fill_tables(t, false);
    if (!add_tables(type, t)) return false;
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
    return (boxed_size == 0 || may_be_boxed(type, boxed_size)) && may_become_producer(type) &&
           add_protocols(type, tables);
}

}  // namespace tenon::py::detail
