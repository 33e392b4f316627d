// examples/keep/keep_pybind11.cpp: the class, bound by pybind11.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <tenon/bind/pybind11.hpp>

#include "keep.hpp"

namespace py = pybind11;

/// Its constructor has run.
static bool is_made(PyObject* self) {
    return reinterpret_cast<py::detail::instance*>(self)->get_value_and_holder().holder_constructed();
}
static int traverse_table(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    return is_made(self) ? traverse(py::cast<const table&>(py::handle(self)), visit, arg) : 0;
}
static int clear_table(PyObject* self) {
    if (is_made(self)) py::cast<table&>(py::handle(self)).clear();
    return 0;
}
static void be_collected(PyHeapTypeObject* type) {
    type->ht_type.tp_flags |= Py_TPFLAGS_HAVE_GC;
    type->ht_type.tp_traverse = &traverse_table;
    type->ht_type.tp_clear = &clear_table;
}

PYBIND11_MODULE(keep_pybind11, m) {
    using namespace py::literals;
    py::class_<table>(m, "Table", py::custom_type_setup(&be_collected))
        .def(py::init<>())
        .def_readwrite("index", &table::index)
        .def_readwrite("notes", &table::notes)
        .def_readonly("columns", &table::columns)
        .def("add", &table::add, "x"_a)
        .def("total", &table::total<py::gil_scoped_release>)
        .def("clear", &table::clear);
}
