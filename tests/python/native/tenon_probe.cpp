// tests/python/native/tenon_probe.cpp: Tenon's C++ side as the tests see it: borrowed calls, and tensors held
// and dropped in C++.
#include <dlfcn.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <tenon/py.hpp>

#include "../../../src/py/import/type_plan.hpp"
#include "../../../src/py/runtime/exceptions.hpp"

namespace {

using tenon::tensor;
using tenon::tensor_ref;
using tenon::py::ref;

PyObject* tuple_of(tenon::extents values) {
    ref out = ref::take(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
    for (std::size_t i = 0; out && i < values.size(); ++i)
        PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(values[i]));
    return out.release();
}

/// The sum over a typed view, in index order whatever the strides are.
template <class T>
double sum(const tenon::view<const T>& v) {
    double total = 0;
    std::int64_t index[tenon::max_rank] = {};
    for (std::int64_t n = 0; n < v.size(); ++n) {
        std::int64_t offset = 0;
        for (std::size_t axis = 0; axis < v.shape().size(); ++axis) offset += index[axis] * v.stride(axis);
        total += static_cast<double>(v.data()[offset]);
        for (std::size_t axis = v.shape().size(); axis-- > 0;) {
            if (++index[axis] < v.shape(axis)) break;
            index[axis] = 0;
        }
    }
    return total;
}

/// The sum as a float, None for what this probe does not read; null with an exception set when the typed view
/// is refused.
PyObject* sum_of(const tensor_ref& t) {
    if (!t.device().is_host_accessible()) Py_RETURN_NONE;
    std::optional<double> total;
    std::optional<tenon::error> why;
    const auto known =
        tenon::dispatch_dtype<std::int8_t, std::uint8_t, std::int16_t, std::int32_t, std::int64_t, float,
                              double, tenon::bool8>(t, [&]<class T>(std::type_identity<T>) {
            const auto v = tenon::view<const T>::from(t);
            if (v)
                total = sum<T>(*v);
            else
                why = v.error();
        });
    if (why) {
        tenon::py::raise(*why, "view: ");
        return nullptr;
    }
    if (!known || !total) Py_RETURN_NONE;
    return PyFloat_FromDouble(*total);
}

/// (pointer, shape, strides, dtype, device, flags, size, nbytes, sum); the sum only when `read` is set.
PyObject* describe(const tensor_ref& t, bool read) {
    ref total = ref::take(read ? sum_of(t) : ref::borrow(Py_None).release());
    if (!total) return nullptr;
    const ref shape = ref::take(tuple_of(t.shape()));
    const ref strides = ref::take(tuple_of(t.strides()));
    if (!shape || !strides) return nullptr;
    return Py_BuildValue("{s:N,s:O,s:O,s:s,s:s,s:K,s:L,s:L,s:O}", "pointer", PyLong_FromVoidPtr(t.data()),
                         "shape", shape.get(), "strides", strides.get(), "dtype", name(t.dtype()).c_str(),
                         "device", name(t.device()).c_str(), "flags",
                         static_cast<unsigned long long>(t.flags()), "size", static_cast<long long>(t.size()),
                         "nbytes", static_cast<long long>(t.nbytes()), "sum", total.get());
}

PyObject* borrow(PyObject*, PyObject* args, PyObject* keywords) {
    static const char* names[] = {"obj",   "writable", "dtype",  "rank", "space",
                                  "order", "read",     "during", nullptr};
    PyObject *obj = nullptr, *during = nullptr;
    const char *type = nullptr, *space = "any", *order = "any";
    int writable = 0, rank = -1, read = 1;
    if (PyArg_ParseTupleAndKeywords(args, keywords, "O|$pzisspO", const_cast<char**>(names), &obj, &writable,
                                    &type, &rank, &space, &order, &read, &during) == 0)
        return nullptr;
    const auto wanted_type = type != nullptr ? tenon::dtype_from_name(type) : std::nullopt;
    tenon::request wanted{.type = wanted_type, .rank = rank, .writable = writable != 0};
    if (std::string(space) == "host") wanted.space = tenon::memory_space::host;
    if (std::string(space) == "accelerator") wanted.space = tenon::memory_space::accelerator;
    if (std::string(order) == "c") wanted.order = tenon::memory_order::c;
    if (std::string(order) == "f") wanted.order = tenon::memory_order::f;
    return tenon::py::borrow(obj, wanted, [&](const tensor_ref& t) -> PyObject* {
        if (during != nullptr) {  // Python that runs while the tensor is borrowed
            const ref done = ref::take(PyObject_CallNoArgs(during));
            if (!done) return nullptr;
        }
        return describe(t, read != 0);
    });
}

/// Borrows `count` times in a row. Returns how many allocations that took, as the preloaded alloc_counter
/// counted them, or None without it.
PyObject* borrow_many(PyObject*, PyObject* args) {
    PyObject* obj = nullptr;
    long count = 0;
    if (PyArg_ParseTuple(args, "Ol", &obj, &count) == 0) return nullptr;
    using counter = long (*)();
    static const auto allocations = reinterpret_cast<counter>(dlsym(RTLD_DEFAULT, "tenon_test_allocations"));
    const long before = allocations != nullptr ? allocations() : 0;
    std::int64_t seen = 0;
    for (long i = 0; i < count; ++i) {
        const bool ran = tenon::py::borrow(obj, {}, [&](const tensor_ref& t) { seen += t.size(); });
        if (!ran) return nullptr;
    }
    const long after = allocations != nullptr ? allocations() : 0;
    if (allocations == nullptr) Py_RETURN_NONE;
    return PyLong_FromLong(after - before);
}

/// Where a plan of the object's type is that still holds: 2 the thread has it, 1 another has made it, 0
/// nowhere.
PyObject* planned(PyObject*, PyObject* obj) {
    PyTypeObject* const type = Py_TYPE(obj);
    const std::size_t home = tenon::py::detail::home_of(type);
    for (std::size_t way = 0; way < tenon::py::detail::plan_ways; ++way)
        if (tenon::py::detail::is_plan_of(tenon::py::detail::plans.at[home ^ way], type))
            return PyLong_FromLong(2);
    tenon::py::type_plan unused;
    return PyLong_FromLong(tenon::py::detail::shared_plans::find(type, unused) ? 1 : 0);
}
PyObject* plan_home(PyObject*, PyObject* obj) {
    return PyLong_FromSize_t(tenon::py::detail::home_of(Py_TYPE(obj)));
}

// --- tensors held by C++ --------------------------------------------------------------------------

struct held_object {
    PyObject_HEAD std::unique_ptr<tensor> tensor_;
};
held_object* as_held(PyObject* self) { return reinterpret_cast<held_object*>(self); }

PyObject* held_drop(PyObject* self, PyObject*) {
    as_held(self)->tensor_.reset();
    Py_RETURN_NONE;
}

/// On a native thread that has no thread state, while this one waits without the GIL.
PyObject* held_drop_on_thread(PyObject* self, PyObject*) {
    auto& held = as_held(self)->tensor_;
    Py_BEGIN_ALLOW_THREADS;
    std::thread([&] { held.reset(); }).join();
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

/// While an exception is pending; returns the exception that is pending afterwards, which must be the same.
PyObject* held_drop_with_error(PyObject* self, PyObject* exception) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception);
    as_held(self)->tensor_.reset();
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    if (value == nullptr) Py_RETURN_NONE;
    return value;
}

/// A native thread drops it after `delay` microseconds, whatever Python does meanwhile. Nobody waits for it.
PyObject* held_drop_later(PyObject* self, PyObject* delay) {
    const long microseconds = PyLong_AsLong(delay);
    if (PyErr_Occurred() != nullptr) return nullptr;
    tensor* const held = as_held(self)->tensor_.release();
    std::thread([held, microseconds] {
        std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
        delete held;
    }).detach();
    Py_RETURN_NONE;
}

PyObject* held_describe(PyObject* self, PyObject*) {
    if (as_held(self)->tensor_ == nullptr) Py_RETURN_NONE;
    return describe(*as_held(self)->tensor_, true);
}

void dealloc_held(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    as_held(self)->tensor_.~unique_ptr();
    type->tp_free(self);
    Py_DECREF(type);
}

PyMethodDef held_methods[] = {
    {"drop", held_drop, METH_NOARGS, nullptr},
    {"drop_on_thread", held_drop_on_thread, METH_NOARGS, nullptr},
    {"drop_with_error", held_drop_with_error, METH_O, nullptr},
    {"drop_later", held_drop_later, METH_O, nullptr},
    {"describe", held_describe, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot held_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_held)},
    {Py_tp_methods, held_methods},
    {0, nullptr},
};
PyType_Spec held_spec = {"tenon_probe.Held", sizeof(held_object), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, held_slots};
PyTypeObject* held_type = nullptr;

PyObject* hold(PyObject*, PyObject* args, PyObject* keywords) {
    static const char* names[] = {"obj", "writable", "trust_legacy", nullptr};
    PyObject* obj = nullptr;
    int writable = 0, trust = 0;
    if (PyArg_ParseTupleAndKeywords(args, keywords, "O|$pp", const_cast<char**>(names), &obj, &writable,
                                    &trust) == 0)
        return nullptr;
    auto t = tenon::py::from_python(obj, {.writable = writable != 0, .trust_legacy = trust != 0});
    if (!t) return nullptr;
    PyObject* const self = held_type->tp_alloc(held_type, 0);
    if (self == nullptr) return nullptr;
    new (&as_held(self)->tensor_) std::unique_ptr<tensor>(std::make_unique<tensor>(std::move(*t)));
    return self;
}

PyMethodDef functions[] = {
    {"borrow", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(borrow)),
     METH_VARARGS | METH_KEYWORDS, "What py::borrow shows of an object, as a dictionary."},
    {"borrow_many", borrow_many, METH_VARARGS, "py::borrow in a loop."},
    {"planned", planned, METH_O, "Who has a plan of an object's type."},
    {"plan_home", plan_home, METH_O, "Where a thread looks for it first."},
    {"hold", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(hold)), METH_VARARGS | METH_KEYWORDS,
     "py::from_python, kept by C++."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "tenon_probe", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit_tenon_probe() {
    ref module = ref::take(PyModule_Create(&definition));
    const ref type = module ? ref::take(PyType_FromSpec(&held_spec)) : ref();
    if (!type || PyModule_AddObjectRef(module.get(), "Held", type.get()) != 0) return nullptr;
#if defined(Py_GIL_DISABLED)
    PyUnstable_Module_SetGIL(module.get(), Py_MOD_GIL_NOT_USED);
#endif
    held_type = reinterpret_cast<PyTypeObject*>(ref::borrow(type.get()).release());
    return module.release();
}
