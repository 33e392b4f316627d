// tests/compile_fail/pybind11_returns_result_of_view.cpp: a bound function returns a view, or an error.
// must say: a view or a span keeps nothing alive: take and keep a tenon::array

#include <pybind11/pybind11.h>
#include <tenon/bind/pybind11.hpp>

#ifdef CORRECT
auto first(tenon::tensor t) { return t.share(); }
#else
auto first(const tenon::tensor& t) { return tenon::view<const float, 1>::from(t); }
#endif

PYBIND11_MODULE(demo, m) { m.def("first", &first); }
