// tests/compile_fail/pybind11_header_missing_tensor.cpp: a tensor is returned without our header.
// must say: include_tenon_bind_pybind11_hpp

#include <pybind11/pybind11.h>
#include <tenon/py.hpp>
#ifdef CORRECT
#include <tenon/bind/pybind11.hpp>  // what is missing
#endif

tenon::result<tenon::tensor> made();

PYBIND11_MODULE(demo, m) { m.def("made", &made); }
