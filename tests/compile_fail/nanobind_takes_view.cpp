// tests/compile_fail/nanobind_takes_view.cpp: a bound function takes a view.
// must say: a view or a span keeps nothing alive: take and keep a tenon::array

#include <nanobind/nanobind.h>
#include <tenon/bind/nanobind.hpp>

#ifdef CORRECT
float first(tenon::array<const float, 1> x) { return x(0); }
#else
float first(tenon::view<const float, 1> x) { return x(0); }
#endif

NB_MODULE(demo, m) { m.def("first", &first); }
