// bench/peer_tenon.cpp: arguments through Tenon, borrowed and owned, and memory handed to Python.

#include <tenon/py.hpp>

#include "sink.h"
#include "source.h"

#include <optional>
#include <utility>

namespace {

// For the table's caption.
#if defined(__clang__)
constexpr char compiler[] = __VERSION__;  // begins with its name
#elif defined(__GNUC__)
constexpr char compiler[] = "GCC " __VERSION__;
#else
constexpr char compiler[] = "unknown";
#endif

void take(const auto& t) {
    sink(t.data(), t.ndim(), t.ndim() ? t.shape()[0] : 0, t.ndim() ? t.strides()[0] : 0,
         static_cast<int64_t>(t.dtype().code) + t.dtype().bits + static_cast<int64_t>(t.device().type));
}

PyObject* take_borrowed(PyObject*, PyObject* object) {
    return tenon::py::borrow(object, tenon::request{}, [](const tenon::tensor_ref& t) -> PyObject* {
        take(t);
        Py_RETURN_NONE;
    });
}

PyObject* take_owned(PyObject*, PyObject* object) {
    std::optional<tenon::tensor> t = tenon::py::from_python(object);
    if (!t) return nullptr;
    take(*t);
    Py_RETURN_NONE;
}

PyObject* last_address(PyObject*, PyObject*) {
    return PyLong_FromVoidPtr(reinterpret_cast<void*>(sink_data));
}

tenon::tensor_info describe_source() {
    return tenon::tensor_info::contiguous(source_memory, {SOURCE_EXTENT, SOURCE_EXTENT});
}

tenon::keep_alive keep_source() {
    return {source_memory, [](void*, void*) noexcept { source_release(); }, nullptr,
            tenon::owner_kind::memory};
}

PyObject* to_like(PyObject*, PyObject* like) {
    return tenon::py::to_python(describe_source(), keep_source(), like);
}

PyObject* to_capsule(PyObject*, PyObject*) { return tenon::py::to_capsule(describe_source(), keep_source()); }

PyObject* to_producer(PyObject*, PyObject*) {
    return tenon::py::to_python(tenon::tensor::own(describe_source(), keep_source()));
}

PyObject* address(PyObject*, PyObject*) { return PyLong_FromVoidPtr(source_memory); }

PyObject* releases(PyObject*, PyObject*) { return PyLong_FromLongLong(source_releases); }

PyMethodDef methods[] = {
    {"take_borrowed", take_borrowed, METH_O, "Borrow the argument for the length of the call."},
    {"take_owned", take_owned, METH_O, "Import the argument as an owner and release it."},
    {"last_address", last_address, METH_NOARGS, "The address the last call saw."},
    {"to_torch", to_like, METH_O, "As an array of the argument's library."},
    {"to_numpy", to_like, METH_O, "As an array of the argument's library."},
    {"to_capsule", to_capsule, METH_O, "As a DLPack capsule."},
    {"to_producer", to_producer, METH_O, "As a producer object."},
    {"address", address, METH_NOARGS, "Where the memory lies."},
    {"releases", releases, METH_NOARGS, "How often it was given back."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "bench_tenon",
    .m_doc = nullptr,
    .m_size = -1,
    .m_methods = methods,
    .m_slots = nullptr,
    .m_traverse = nullptr,
    .m_clear = nullptr,
    .m_free = nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit_bench_tenon() {
    PyObject* module = PyModule_Create(&definition);
    if (module && PyModule_AddStringConstant(module, "compiler", compiler) != 0) Py_CLEAR(module);
    return module;
}
