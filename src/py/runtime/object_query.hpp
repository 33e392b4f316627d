// src/py/runtime/object_query.hpp: a question that is put to many objects of a type: the C function behind it
// is found once.
#pragma once

#include "base.hpp"
#include "call.hpp"

namespace tenon::py {

/// By a method without arguments or an attribute: asking costs no attribute lookup where there is a C
/// function.
class object_query {
public:
    constexpr object_query() noexcept = default;

    [[nodiscard]] static object_query find(PyTypeObject* type, PyObject* name) noexcept {
        object_query query;
        const ref found = ref::take(call::type_attr(type, name));
        if (!found) return query;
        query.kind_ = kind::python;
        query.is_method_ =
            Py_TYPE(found.get())->tp_descr_get != nullptr && PyCallable_Check(found.get()) != 0;
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
            case kind::python:
                return ref::take(is_method_ ? call::method(self, name) : call::attr(self, name));
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
    enum class kind : unsigned char { none, c_method, c_getter, python };
    kind kind_ = kind::none;
    bool is_method_ = false;
    PyCFunction method_ = nullptr;
    getter getter_ = nullptr;
    void* closure_ = nullptr;
};

}  // namespace tenon::py
