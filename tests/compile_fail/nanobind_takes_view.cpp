// tests/compile_fail/nanobind_takes_view.cpp: a function bound by nanobind has a view as its parameter.
// must say: a view or a span keeps nothing alive: take and keep a tenon::array or a tenon::tensor, and return one of these

#include <nanobind/nanobind.h>
#include <tenon/bind/nanobind.hpp>

#ifdef CORRECT
float first(tenon::array<const float, 1> x) { return x(0); }
#else
float first(tenon::view<const float, 1> x) { return x(0); }
#endif

NB_MODULE(demo, m) { m.def("first", &first); }
