// tests/compile_fail/pybind11_returns_span.cpp: a bound function returns a span of its argument.
// must say: a view or a span keeps nothing alive: take and keep a tenon::array

#include <pybind11/pybind11.h>
#include <tenon/bind/pybind11.hpp>

using vector = tenon::array<const float, 1, tenon::c_contiguous>;
#ifdef CORRECT
auto same(vector x) { return x; }
#else
auto same(vector x) { return x.span(); }
#endif

PYBIND11_MODULE(demo, m) { m.def("same", &same); }
