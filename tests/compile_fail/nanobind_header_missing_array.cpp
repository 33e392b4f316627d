// tests/compile_fail/nanobind_header_missing_array.cpp: an array is bound without our header.
// must say: include_tenon_bind_nanobind_hpp

#include <nanobind/nanobind.h>
#include <tenon/bind/array.hpp>
#ifdef CORRECT
#include <tenon/bind/nanobind.hpp>  // what is missing
#endif

float first(tenon::array<const float, 1> x) { return x(0); }

NB_MODULE(demo, m) { m.def("first", &first); }
