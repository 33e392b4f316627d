// tests/compile_fail/nanobind_header_missing_tensor.cpp: a tensor is returned without our header.
// must say: include_tenon_bind_nanobind_hpp

#include <nanobind/nanobind.h>
#include <tenon/py.hpp>
#ifdef CORRECT
#include <tenon/bind/nanobind.hpp>  // what is missing
#endif

tenon::result<tenon::tensor> made();

NB_MODULE(demo, m) { m.def("made", &made); }
