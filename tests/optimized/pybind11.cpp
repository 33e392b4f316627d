// tests/optimized/pybind11.cpp: the loops bound by pybind11.
#include <pybind11/pybind11.h>
#include <tenon/bind/pybind11.hpp>

#include "kernels.hpp"

PYBIND11_MODULE(optimized, m) {
    m.def("add_scaled", add_scaled);
    m.def("invert", invert);
    m.def("subtract", subtract);
    m.def("multiply", multiply);
}
