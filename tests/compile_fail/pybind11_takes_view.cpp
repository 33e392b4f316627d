// tests/compile_fail/pybind11_takes_view.cpp: a bound function takes a view.
// must say: a view or a span keeps nothing alive: take and keep a tenon::array

#include <pybind11/pybind11.h>
#include <tenon/bind/pybind11.hpp>

#ifdef CORRECT
float first(tenon::array<const float, 1> x) { return x(0); }
#else
float first(tenon::view<const float, 1> x) { return x(0); }
#endif

PYBIND11_MODULE(demo, m) { m.def("first", &first); }
