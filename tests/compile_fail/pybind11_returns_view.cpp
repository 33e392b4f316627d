// tests/compile_fail/pybind11_returns_view.cpp: a bound function returns a view of its argument.
// must say: a view or a span keeps nothing alive: take and keep a tenon::array

#include <pybind11/pybind11.h>
#include <tenon/bind/pybind11.hpp>

#ifdef CORRECT
auto same(tenon::array<const float, 1> x) { return x; }
#else
auto same(tenon::array<const float, 1> x) { return x.view(); }
#endif

PYBIND11_MODULE(demo, m) { m.def("same", &same); }
