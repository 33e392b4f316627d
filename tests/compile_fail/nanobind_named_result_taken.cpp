// tests/compile_fail/nanobind_named_result_taken.cpp: a parameter is what is a result alone.
// must say: a type that names a library is a result: take a tenon::array

#include <nanobind/nanobind.h>
#include <tenon/bind/nanobind.hpp>

#ifdef CORRECT
void fill(tenon::array<float, 1>) {}
#else
void fill(tenon::numpy_array<float, 1>) {}
#endif

NB_MODULE(demo, m) { m.def("fill", &fill); }
