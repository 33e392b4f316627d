// examples/keep/keep_nanobind.cpp: the class, bound by nanobind.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>
#include <tenon/bind/nanobind.hpp>

#include "keep.hpp"

namespace nb = nanobind;

static int traverse_table(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    return nb::inst_ready(self) ? traverse(*nb::inst_ptr<table>(self), visit, arg) : 0;
}
static int clear_table(PyObject* self) {
    if (nb::inst_ready(self)) nb::inst_ptr<table>(self)->clear();
    return 0;
}
static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse_table)},
                              {Py_tp_clear, reinterpret_cast<void*>(&clear_table)},
                              {0, nullptr}};

NB_MODULE(keep_nanobind, m) {
    using namespace nb::literals;
    nb::class_<table>(m, "Table", nb::type_slots(slots))
        .def(nb::init<>())
        .def_rw("index", &table::index)
        .def_rw("notes", &table::notes)
        .def_ro("columns", &table::columns)
        .def("add", &table::add, "x"_a)
        .def("total", &table::total<nb::gil_scoped_release>)
        .def("clear", &table::clear);
}
