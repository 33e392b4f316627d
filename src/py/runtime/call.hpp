// src/py/runtime/call.hpp: the CPython calls that can run code of others, each safe on a thread that is ended
// meanwhile.
//
// Whoever needs one of these takes it from here: see tenon/detail/foreign_code.hpp for what happens
// otherwise.
#pragma once

#include "base.hpp"

namespace tenon::py::call {

using detail::drop;

/// getattr that treats AttributeError as "not there": 1 found (new reference), 0 absent, -1 another error.
TENON_COLD inline int optional_attr(PyObject* obj, PyObject* name, PyObject** out) noexcept {
    return foreign_code([&] {
#if PY_VERSION_HEX >= 0x030D0000
        return PyObject_GetOptionalAttr(obj, name, out);
#else
        return _PyObject_LookupAttr(obj, name, out);
#endif
    });
}

/// What a class attribute lookup finds along the MRO: a new reference or null, never an error. No code of the
/// type's runs, but for an `__eq__` among its keys. Gives the type a version tag where it can have one.
TENON_COLD inline PyObject* type_attr(PyTypeObject* type, PyObject* name) noexcept {
    return foreign_code([&] {
        Py_INCREF(type);  // such an `__eq__` may let go of it
#if PY_VERSION_HEX >= 0x030D0000
        PyObject* const found = _PyType_LookupRef(type, name);
#else
        PyObject* const found = _PyType_Lookup(type, name);
        Py_XINCREF(found);
#endif
        Py_DECREF(type);
        return found;
    });
}

/// dict[key]: 1 found (new reference), 0 absent, -1 an error.
TENON_COLD inline int dict_item(PyObject* dict, PyObject* key, PyObject** out) noexcept {
    return foreign_code([&] {
#if PY_VERSION_HEX >= 0x030D0000
        return PyDict_GetItemRef(dict, key, out);
#else
        *out = PyDict_GetItemWithError(dict, key);
        Py_XINCREF(*out);
        return *out != nullptr ? 1 : PyErr_Occurred() != nullptr ? -1 : 0;
#endif
    });
}
/// The same of a key that is text: a new reference, or null without an error.
TENON_COLD inline PyObject* dict_item(PyObject* dict, const char* key) noexcept {
    return foreign_code([&] {
        PyObject* const found = PyDict_GetItemString(dict, key);
        Py_XINCREF(found);
        return found;
    });
}
/// What is there under the key, or `value`, put there if nothing was: a new reference, or null with an
/// exception.
TENON_COLD inline PyObject* dict_item_or_set(PyObject* dict, PyObject* key, PyObject* value) noexcept {
    return foreign_code([&] {
        PyObject* const found = PyDict_SetDefault(dict, key, value);
        Py_XINCREF(found);
        return found;
    });
}
TENON_COLD inline int set_dict_item(PyObject* dict, PyObject* key, PyObject* value) noexcept {
    return foreign_code([&] { return PyDict_SetItem(dict, key, value); });
}
TENON_COLD inline int set_dict_item(PyObject* dict, const char* key, PyObject* value) noexcept {
    return foreign_code([&] { return PyDict_SetItemString(dict, key, value); });
}
TENON_COLD inline int delete_dict_item(PyObject* dict, PyObject* key) noexcept {
    return foreign_code([&] { return PyDict_DelItem(dict, key); });
}
TENON_COLD inline int dict_contains(PyObject* dict, PyObject* key) noexcept {
    return foreign_code([&] { return PyDict_Contains(dict, key); });
}

/// The items of a list at one moment, as a tuple: new, or null with an exception. CPython's own function
/// reads where they are, then allocates, and then copies them: before 3.12 a finalizer that the collector
/// runs in between may have made the list shorter.
TENON_COLD inline PyObject* list_items(PyObject* list) noexcept {
#if defined(Py_GIL_DISABLED)
    return foreign_code([&] { return PyList_AsTuple(list); });  // which locks the list
#else
    for (;;) {
        const Py_ssize_t count = PyList_GET_SIZE(list);
        PyObject* const items = foreign_code([&] { return PyTuple_New(count); });
        if (items == nullptr) return nullptr;
        if (count == PyList_GET_SIZE(list)) {
            for (Py_ssize_t i = 0; i < count; ++i) {
                PyObject* const item = PyList_GET_ITEM(list, i);
                Py_INCREF(item);
                PyTuple_SET_ITEM(items, i, item);
            }
            return items;
        }
        Py_DECREF(items);  // empty
    }
#endif
}

TENON_COLD inline PyObject* attr(PyObject* obj, PyObject* name) noexcept {
    return foreign_code([&] { return PyObject_GetAttr(obj, name); });
}
TENON_COLD inline PyObject* attr(PyObject* obj, const char* name) noexcept {
    return foreign_code([&] { return PyObject_GetAttrString(obj, name); });
}
TENON_COLD inline int set_attr(PyObject* obj, const char* name, PyObject* value) noexcept {
    return foreign_code([&] { return PyObject_SetAttrString(obj, name, value); });
}
TENON_COLD inline PyObject* item(PyObject* obj, PyObject* key) noexcept {
    return foreign_code([&] { return PyObject_GetItem(obj, key); });
}

/// obj.name(*args), the arguments as for Py_BuildValue.
template <class... Args>
TENON_COLD PyObject* method(PyObject* obj, const char* name, const char* format, Args... args) noexcept {
    return foreign_code([&] { return PyObject_CallMethod(obj, name, format, args...); });
}
TENON_COLD inline PyObject* method(PyObject* obj, PyObject* name) noexcept {
    return foreign_code([&] { return PyObject_CallMethodNoArgs(obj, name); });
}
/// Keywords alone, after the object: `args[0]` is the object, and the slot before it is free for the callee.
TENON_COLD inline PyObject* keyword_method(PyObject* name, PyObject* const* args,
                                           PyObject* keywords) noexcept {
    return foreign_code(
        [&] { return PyObject_VectorcallMethod(name, args, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, keywords); });
}
TENON_COLD inline PyObject* keyword_call(PyObject* callable, PyObject* const* args,
                                         PyObject* keywords) noexcept {
    return foreign_code(
        [&] { return PyObject_Vectorcall(callable, args, 0 | PY_VECTORCALL_ARGUMENTS_OFFSET, keywords); });
}

TENON_COLD inline PyObject* import_module(const char* name) noexcept {
    return foreign_code([&] { return PyImport_ImportModule(name); });
}
/// A module that has been imported: a new reference, or null, with an exception or without.
TENON_COLD inline PyObject* imported_module(const char* name) noexcept {
    return foreign_code([&]() -> PyObject* {
        PyObject* const text = PyUnicode_FromString(name);
        PyObject* const found = text != nullptr ? PyImport_GetModule(text) : nullptr;
        Py_XDECREF(text);
        return found;
    });
}
TENON_COLD inline PyObject* one_argument(PyObject* callable, PyObject* argument) noexcept {
    return foreign_code([&] { return PyObject_CallOneArg(callable, argument); });
}

TENON_COLD inline PyObject* index(PyObject* obj) noexcept {
    return foreign_code([&] { return PyNumber_Index(obj); });
}
TENON_COLD inline PyObject* call(PyObject* callable, PyObject* args, PyObject* keywords) noexcept {
    return foreign_code([&] { return PyObject_Call(callable, args, keywords); });
}
/// Runs a program over the variables of a dictionary: None, or null with an exception set.
TENON_COLD inline PyObject* run(const char* program, PyObject* variables) noexcept {
    return foreign_code([&] { return PyRun_String(program, Py_file_input, variables, variables); });
}
TENON_COLD inline int is_true(PyObject* obj) noexcept {
    return foreign_code([&] { return PyObject_IsTrue(obj); });
}

TENON_COLD inline int get_buffer(PyObject* obj, Py_buffer* out, int request) noexcept {
    return foreign_code([&] { return PyObject_GetBuffer(obj, out, request); });
}
TENON_COLD inline void release_buffer(Py_buffer* held) noexcept {
    foreign_code([&] { PyBuffer_Release(held); });
}

TENON_COLD inline void clear_weak_references(PyObject* dying) noexcept {
    foreign_code([&] { PyObject_ClearWeakRefs(dying); });
}
/// Reports the pending exception. `where` is never a dying object: reporting would revive it.
TENON_COLD inline void write_unraisable(PyObject* where = nullptr) noexcept {
    foreign_code([&] { PyErr_WriteUnraisable(where); });
}

}  // namespace tenon::py::call
