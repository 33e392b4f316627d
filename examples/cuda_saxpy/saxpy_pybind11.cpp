// examples/cuda_saxpy/saxpy_pybind11.cpp: the functions of saxpy.hpp, bound by pybind11.
#include <pybind11/pybind11.h>
#include <tenon/bind/pybind11.hpp>

#include "saxpy.hpp"

namespace py = pybind11;

PYBIND11_MODULE(saxpy_pybind11, module) {
    module.attr("has_cuda") = has_cuda;
    module.def("saxpy", &saxpy, py::arg("a"), py::arg("x"), py::arg("y"),
               "a * x + y, as an array of x's library.");
    module.def("saxpy_into", &saxpy_into, py::arg("a"), py::arg("x"), py::arg("y"),
               "y = a * x + y, in place.");
}
