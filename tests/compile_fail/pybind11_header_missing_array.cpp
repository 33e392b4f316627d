// tests/compile_fail/pybind11_header_missing_array.cpp: an array is bound without our header.
// must say: include_tenon_bind_pybind11_hpp

#include <pybind11/pybind11.h>
#include <tenon/bind/array.hpp>
#ifdef CORRECT
#include <tenon/bind/pybind11.hpp>  // what is missing
#endif

float first(tenon::array<const float, 1> x) { return x(0); }

PYBIND11_MODULE(demo, m) { m.def("first", &first); }
