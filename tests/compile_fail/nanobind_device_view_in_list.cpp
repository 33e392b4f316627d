// tests/compile_fail/nanobind_device_view_in_list.cpp: a function bound by nanobind returns a list of device views.
// must say: a view or a span keeps nothing alive: take and keep a tenon::array or a tenon::tensor, and return one of these

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>
#include <tenon/bind/nanobind.hpp>

#ifdef CORRECT
std::vector<tenon::tensor> all();
#else
std::vector<tenon::device_view<const float, 1>> all();
#endif

NB_MODULE(demo, m) { m.def("all", &all); }
