// examples/cuda_saxpy/saxpy_nanobind.cpp: the functions of saxpy.hpp, bound by nanobind.
#include <nanobind/nanobind.h>
#include <tenon/bind/nanobind.hpp>

#include "saxpy.hpp"

namespace nb = nanobind;

NB_MODULE(saxpy_nanobind, module) {
    module.attr("has_cuda") = has_cuda;
    module.def("saxpy", &saxpy, nb::arg("a"), nb::arg("x"), nb::arg("y"),
               "a * x + y, as an array of x's library.");
    module.def("saxpy_into", &saxpy_into, nb::arg("a"), nb::arg("x"), nb::arg("y"),
               "y = a * x + y, in place.");
}
