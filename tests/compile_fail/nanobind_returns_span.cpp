// tests/compile_fail/nanobind_returns_span.cpp: a bound function returns a span of its argument.
// must say: a view or a span keeps nothing alive: take and keep a tenon::array

#include <nanobind/nanobind.h>
#include <tenon/bind/nanobind.hpp>

using vector = tenon::array<const float, 1, tenon::c_contiguous>;
#ifdef CORRECT
auto same(vector x) { return x; }
#else
auto same(vector x) { return x.span(); }
#endif

NB_MODULE(demo, m) { m.def("same", &same); }
