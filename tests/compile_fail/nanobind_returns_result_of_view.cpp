// tests/compile_fail/nanobind_returns_result_of_view.cpp: a function bound by nanobind returns a view that may not be one.
// must say: a view or a span keeps nothing alive: take and keep a tenon::array or a tenon::tensor, and return one of these

#include <nanobind/nanobind.h>
#include <tenon/bind/nanobind.hpp>

#ifdef CORRECT
auto first(tenon::tensor t) { return t.share(); }
#else
auto first(const tenon::tensor& t) { return tenon::view<const float, 1>::from(t); }
#endif

NB_MODULE(demo, m) { m.def("first", &first); }
