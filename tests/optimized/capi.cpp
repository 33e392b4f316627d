// tests/optimized/capi.cpp: the loops bound by hand.
#include <tenon/bind/function.hpp>

#include "kernels.hpp"

namespace {

PyMethodDef methods[] = {tenon::py::function<add_scaled>("add_scaled", {"a", "x", "y"}),
                         tenon::py::function<invert>("invert", {"x"}),
                         tenon::py::function<subtract>("subtract", {"y", "x"}),
                         tenon::py::function<multiply>("multiply", {"x", "y"}),
                         {}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "optimized", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_optimized() { return PyModule_Create(&definition); }
