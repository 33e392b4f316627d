// bench/gpu/bound_pybind11.cpp: the GPU page's functions by pybind11, which has no such arrays of its own.

#include <pybind11/pybind11.h>
#include <tenon/bind/pybind11.hpp>

#include "bound.h"

namespace py = pybind11;

PYBIND11_MODULE(bench_gpu_pybind11, m) {
    m.def("take", &take_vector, py::arg("x"));
    m.def("like", &like_vector, py::arg("x"));
    m.def("saxpy", &saxpy, py::arg("a"), py::arg("x"), py::arg("y"));
    m.def("last_address", &last_address);
    m.def("last_stream", &last_stream);
}
