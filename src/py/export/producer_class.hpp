// src/py/export/producer_class.hpp: `make_producer` gives a Python class of the user's own every protocol
// at once.
#pragma once

#include <type_traits>

#include <tenon/py/acquired.hpp>
#include <tenon/py/call.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/tensor/tensor_info.hpp>
#include "../runtime/interpreter.hpp"
#include "producer_type.hpp"
#include "protocols.hpp"

namespace tenon::py {

/// A Python object with a `T` right behind its head, as classes written in plain C have it.
template <class T>
struct boxed {
    PyObject_HEAD T value;
};

namespace detail {

template <class T>
struct unbox {
    T* operator()(PyObject* self) const noexcept { return &reinterpret_cast<boxed<T>*>(self)->value; }
};

/// Reads the objects of a user's class, anew each time: it may have grown, or moved its memory.
template <class T, class Get>
struct TENON_PRIVATE class_source {
    static constexpr bool lends =
        false;  // the axes are ours for the length of a call, the memory the class's

    /// The class, or one derived from it: known by a slot that only `make_producer` fills.
    [[nodiscard]] static bool is_own(PyObject* obj, const interpreter&) noexcept {
        PyObject* const mro = Py_TYPE(obj)->tp_mro;
        for (Py_ssize_t i = 0; mro != nullptr && i < PyTuple_GET_SIZE(mro); ++i) {
            const PyBufferProcs* const procs =
                reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i))->tp_as_buffer;
            if (procs != nullptr && procs->bf_getbuffer == protocols<class_source>::get_buffer) return true;
        }
        return false;
    }
    [[nodiscard]] static const tensor_ref* read(PyObject* self, acquired& room) noexcept try {
        return foreign_code([&]() -> const tensor_ref* {
            auto* const object = Get{}(self);
            if (PyErr_Occurred() != nullptr) return nullptr;
            if (object == nullptr) {
                PyErr_Format(PyExc_ValueError, "tenon: this '%.100s' object holds nothing to export",
                             Py_TYPE(self)->tp_name);
                return nullptr;
            }
            const tensor_info info = describe(*object);
            auto ok = info.check();
            if (ok) ok = room.admit(info.to_abi(), info.flags(), {abi::dlpack_major, abi::dlpack_minor});
            if (ok) room.set_stream(info.stream());
            if (ok) return &room;
            raise(ok.error(), std::string("tenon: describe() of '") + Py_TYPE(self)->tp_name + "': ");
            return nullptr;
        });
    } catch (...) {
        raise_caught();
        return nullptr;
    }
    [[nodiscard]] static PyObject* wrap(tensor&& t) noexcept { return to_python(std::move(t)); }
};

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
template <class Functions>
[[nodiscard]] bool add_buffer_methods(PyTypeObject* type) noexcept {
#if PY_VERSION_HEX >= 0x030C0000
    return add_slot_method(type, PyByteArray_Type, "__buffer__",
                           reinterpret_cast<void*>(Functions::get_buffer)) &&
           add_slot_method(type, PyByteArray_Type, "__release_buffer__",
                           reinterpret_cast<void*>(Functions::release_buffer));
#else
    static_cast<void>(type);
    return true;
#endif
}

/// int() and float() of a class that has neither of its own: its buffer would be read as text.
template <class Functions>
[[nodiscard]] bool add_numbers(PyTypeObject* type) noexcept {
    static PyNumberMethods none;
    if (type->tp_as_number == nullptr) type->tp_as_number = &none;
    PyNumberMethods& own = *type->tp_as_number;
    const bool is_bases = type->tp_base != nullptr && type->tp_base->tp_as_number == &own;
    if (is_bases || own.nb_index != nullptr) return true;
    if (own.nb_int == nullptr) {
        own.nb_int = Functions::as_int;
        if (!add_slot_method(type, PyLong_Type, "__int__", reinterpret_cast<void*>(own.nb_int))) return false;
    }
    if (own.nb_float == nullptr) {
        own.nb_float = Functions::as_float;
        if (!add_slot_method(type, PyLong_Type, "__float__", reinterpret_cast<void*>(own.nb_float)))
            return false;
    }
    return true;
}

template <class Source>
[[nodiscard]] bool add_protocols(PyTypeObject* type) noexcept {
    using functions = protocols<Source>;
    for (PyMethodDef* m = functions::methods(); m->ml_name != nullptr; ++m)
        if (!add_to_type(type, m->ml_name, ref::take(PyDescr_NewMethod(type, m)))) return false;
    for (PyGetSetDef* g = functions::attributes(); g->name != nullptr; ++g)
        if (!add_to_type(type, g->name, ref::take(PyDescr_NewGetSet(type, g)))) return false;
    if (!publish_table<Source>(type)) return false;
    if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0) {
        type->tp_as_buffer = &reinterpret_cast<PyHeapTypeObject*>(type)->as_buffer;
    } else {
        static PyBufferProcs procs;
        type->tp_as_buffer = &procs;
    }
    type->tp_as_buffer->bf_getbuffer = functions::get_buffer;
    type->tp_as_buffer->bf_releasebuffer = functions::release_buffer;
    const bool done = add_buffer_methods<functions>(type) && add_numbers<functions>(type);
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

/// Whether objects of the type can have a `boxed<T>` in them: as large as that, and of a class that no binder
/// has made, which would put something else there.
template <class T>
[[nodiscard]] bool may_be_boxed(PyTypeObject* type) noexcept {
    if (Py_IS_TYPE(reinterpret_cast<PyObject*>(type), &PyType_Type) &&
        type->tp_basicsize == static_cast<Py_ssize_t>(sizeof(boxed<T>)) && type->tp_itemsize == 0)
        return true;
    PyErr_Format(PyExc_TypeError,
                 "tenon: objects of '%.100s' are not tenon::py::boxed; pass make_producer a function that "
                 "finds the value in them",
                 type->tp_name);
    return false;
}

}  // namespace detail

/// Gives the class `type`, whose objects hold a `T` that `tensor_info describe(T&)` describes, every protocol
/// of a producer: `__dlpack__`, `__dlpack_device__`, the C exchange table, the buffer protocol,
/// `__array_interface__`, `__cuda_array_interface__`, `__array__`, and Arrow's `__arrow_c_array__` and its
/// like. What is exported keeps the object alive; its memory must stay where it is meanwhile.
///
/// `get` is a lambda without captures that finds the `T` in an object; null means that there is none. Without
/// it, the objects are `py::boxed<T>`. To be called once, before the class is derived from. False with an
/// exception set on failure.
template <class T, class Get = detail::unbox<T>>
[[nodiscard]] bool make_producer(PyTypeObject* type, Get = {}) noexcept {
    static_assert(describable<T>, "make_producer: T needs a function `tenon::tensor_info describe(T&)`");
    static_assert(
        std::is_empty_v<Get> && std::is_default_constructible_v<Get>,
        "make_producer: pass a lambda that captures nothing, `[](PyObject* o) { return find(o); }`");
    static_assert(std::is_convertible_v<std::invoke_result_t<Get, PyObject*>, const T*>,
                  "make_producer: `get` must return a pointer to T");
    static_assert(describable<std::remove_pointer_t<std::invoke_result_t<Get, PyObject*>>>,
                  "make_producer: `get` returns a pointer to const, which `describe(T&)` cannot take");
    if constexpr (std::is_same_v<Get, detail::unbox<T>>)
        if (!detail::may_be_boxed<T>(type)) return false;
    return detail::may_become_producer(type) && detail::add_protocols<detail::class_source<T, Get>>(type);
}
template <class T, class Get = detail::unbox<T>>
[[nodiscard]] bool make_producer(PyObject* type, Get get = {}) noexcept {
    if (PyType_Check(type) != 0) return make_producer<T>(reinterpret_cast<PyTypeObject*>(type), get);
    PyErr_SetString(PyExc_TypeError, "tenon: make_producer needs a class");
    return false;
}

}  // namespace tenon::py
