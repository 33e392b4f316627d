// tests/compile_fail/nanobind_returns_view.cpp: a bound function returns a view of its argument.
// must say: a view or a span keeps nothing alive: take and keep a tenon::array

#include <nanobind/nanobind.h>
#include <tenon/bind/nanobind.hpp>

#ifdef CORRECT
auto same(tenon::array<const float, 1> x) { return x; }
#else
auto same(tenon::array<const float, 1> x) { return x.view(); }
#endif

NB_MODULE(demo, m) { m.def("same", &same); }
