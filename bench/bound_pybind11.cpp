// bench/bound_pybind11.cpp: a constrained argument by pybind11, as its own array_t and as Tenon's array.

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <tenon/bind/pybind11.hpp>

#include "bound.h"

namespace py = pybind11;

PYBIND11_MODULE(bench_bound_pybind11, m) {
    m.def("empty", [](py::handle) {}, py::arg("x"));
    m.def(
        "own",
        [](const py::array_t<float>& a) {
            sink(a.data(), a.ndim(), a.shape(0), a.strides(0), a.dtype().num());
        },
        py::arg("x").noconvert());
    m.def("tenon", &take_matrix, py::arg("x"));
    m.def("last_address", &last_address);
}
