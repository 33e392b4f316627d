// tests/optimized/nanobind.cpp: the loops bound by nanobind.
#include <nanobind/nanobind.h>
#include <tenon/bind/nanobind.hpp>

#include "kernels.hpp"

NB_MODULE(optimized, m) {
    m.def("add_scaled", add_scaled);
    m.def("invert", invert);
    m.def("subtract", subtract);
    m.def("multiply", multiply);
}
