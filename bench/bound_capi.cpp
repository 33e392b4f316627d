// bench/bound_capi.cpp: a constrained argument of a module written by hand.

#include <tenon/bind/function.hpp>

#include "bound.h"

namespace {

void ignore(PyObject*) {}

PyMethodDef methods[] = {tenon::py::function<&ignore>("empty", {"x"}),
                         tenon::py::function<&take_matrix>("tenon", {"x"}),
                         tenon::py::function<&last_address>("last_address"),
                         {}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "bench_bound_capi", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_bench_bound_capi() { return PyModule_Create(&definition); }
