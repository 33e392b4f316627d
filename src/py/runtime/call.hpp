// src/py/runtime/call.hpp: the CPython calls that can run code of others, each safe on a thread that is ended
// meanwhile; and questions that are put to many objects.
//
// Whoever needs one of these takes it from here: see tenon/detail/foreign_code.hpp for what happens
// otherwise.
#pragma once

#include "base.hpp"

namespace tenon::py::call {

using detail::drop;

/// A function of CPython's as it is, safe.
template <auto Function>
struct safe;
template <class Result, class... Args, Result (*Function)(Args...)>
struct safe<Function> {
    TENON_COLD static Result run(Args... args) noexcept {
        return foreign_code([&] { return Function(args...); });
    }
};

inline constexpr auto call = safe<PyObject_Call>::run;
inline constexpr auto one_argument = safe<PyObject_CallOneArg>::run;
inline constexpr auto set_attr = safe<PyObject_SetAttrString>::run;
inline constexpr auto import_module = safe<PyImport_ImportModule>::run;
inline constexpr auto dict_contains = safe<PyDict_Contains>::run;
inline constexpr auto delete_dict_item = safe<PyDict_DelItem>::run;
inline constexpr auto index = safe<PyNumber_Index>::run;
inline constexpr auto is_true = safe<PyObject_IsTrue>::run;
inline constexpr auto str = safe<PyObject_Str>::run;
inline constexpr auto get_buffer = safe<PyObject_GetBuffer>::run;
inline constexpr auto release_buffer = safe<PyBuffer_Release>::run;
inline constexpr auto clear_weak_references = safe<PyObject_ClearWeakRefs>::run;
/// getattr that treats AttributeError as "not there": 1 found (new reference), 0 absent, -1 another error.
#if PY_VERSION_HEX >= 0x030D0000
inline constexpr auto optional_attr = safe<PyObject_GetOptionalAttr>::run;
#else
inline constexpr auto optional_attr = safe<_PyObject_LookupAttr>::run;
#endif

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

/// The same by a name that is text.
TENON_COLD inline PyObject* type_attr(PyTypeObject* type, const char* name) noexcept {
    const ref key = ref::take(PyUnicode_InternFromString(name));
    return key ? type_attr(type, key.get()) : nullptr;
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

/// A module that has been imported: a new reference, or null, with an exception or without.
TENON_COLD inline PyObject* imported_module(const char* name) noexcept {
    const ref text = ref::take(PyUnicode_FromString(name));
    return text ? foreign_code([&] { return PyImport_GetModule(text.get()); }) : nullptr;
}
/// What an expression of Python's comes to, over the variables of a dictionary.
TENON_COLD inline PyObject* evaluate(const char* expression, PyObject* variables) noexcept {
    return foreign_code([&] { return PyRun_String(expression, Py_eval_input, variables, variables); });
}
/// Runs a program over them: None, or null with an exception set.
TENON_COLD inline PyObject* run(const char* program, PyObject* variables) noexcept {
    return foreign_code([&] { return PyRun_String(program, Py_file_input, variables, variables); });
}
/// Reports the pending exception. `where` is never a dying object: reporting would revive it.
TENON_COLD inline void write_unraisable(PyObject* where = nullptr) noexcept {
    foreign_code([&] { PyErr_WriteUnraisable(where); });
}

}  // namespace tenon::py::call

namespace tenon::py {

/// A question that is put to many objects of a type, by a method without arguments or an attribute: the C
/// function behind it is found once, and asking costs no lookup.
class object_query {
public:
    constexpr object_query() noexcept = default;

    [[nodiscard]] static object_query find(PyTypeObject* type, PyObject* name) noexcept {
        object_query query;
        const ref found = ref::take(call::type_attr(type, name));
        if (!found) return query;
        const bool is_method =
            Py_TYPE(found.get())->tp_descr_get != nullptr && PyCallable_Check(found.get()) != 0;
        query.kind_ = is_method ? kind::method : kind::attribute;
        // A descriptor borrowed from an unrelated class must do its own type check, and raise.
        const auto is_own = [&](PyTypeObject& descriptor) {
            return Py_IS_TYPE(found.get(), &descriptor) &&
                   PyType_IsSubtype(type, PyDescr_TYPE(found.get())) != 0;
        };
        if (is_own(PyMethodDescr_Type)) {
            const PyMethodDef* def = reinterpret_cast<PyMethodDescrObject*>(found.get())->d_method;
            if (def->ml_flags != METH_NOARGS) return query;
            query.kind_ = kind::c_method;
            query.method_ = def->ml_meth;
        } else if (is_own(PyGetSetDescr_Type)) {
            const PyGetSetDef* def = reinterpret_cast<PyGetSetDescrObject*>(found.get())->d_getset;
            if (def->get == nullptr) return query;
            query.kind_ = kind::c_getter;
            query.getter_ = def->get;
            query.closure_ = def->closure;
        }
        return query;
    }

    [[nodiscard]] bool exists() const noexcept { return kind_ != kind::none; }
    /// The same function, found on another type.
    [[nodiscard]] bool operator==(const object_query&) const noexcept = default;

    /// The answer, or nothing with an exception set. The attribute must exist.
    [[nodiscard]] ref fetch(PyObject* self, PyObject* name) const noexcept {
        switch (kind_) {
            case kind::none:
                break;
            case kind::c_method:
                return ref::take(foreign_code([&] { return method_(self, nullptr); }));
            case kind::c_getter:
                return ref::take(foreign_code([&] { return getter_(self, closure_); }));
            case kind::method:
                return ref::take(call::method(self, name));
            case kind::attribute:
                return ref::take(call::attr(self, name));
        }
        return {};
    }

    /// 1 yes, 0 no, -1 an exception is set. A type without the attribute answers no.
    [[nodiscard]] int ask(PyObject* self, PyObject* name) const noexcept {
        if (!exists()) return 0;
        const ref answer = fetch(self, name);
        if (!answer && PyErr_Occurred() == nullptr)
            PyErr_SetString(PyExc_SystemError,
                            "tenon: an attribute of the tensor failed without an exception");
        return answer ? call::is_true(answer.get()) : -1;
    }

private:
    enum class kind : unsigned char { none, c_method, c_getter, method, attribute };
    kind kind_ = kind::none;
    PyCFunction method_ = nullptr;
    getter getter_ = nullptr;
    void* closure_ = nullptr;
};

}  // namespace tenon::py
