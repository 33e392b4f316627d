// tests/compile_fail/pybind11_named_result_taken.cpp: a parameter is what is a result alone.
// must say: a type that names a library is a result: take a tenon::array

#include <pybind11/pybind11.h>
#include <tenon/bind/pybind11.hpp>

#ifdef CORRECT
void fill(tenon::array<float, 1>) {}
#else
void fill(tenon::numpy_array<float, 1>) {}
#endif

PYBIND11_MODULE(demo, m) { m.def("fill", &fill); }
