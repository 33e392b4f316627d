// tests/compile_fail/nanobind_device_view_in_list.cpp: a list of device views is returned.
// must say: a view or a span keeps nothing alive: take and keep a tenon::array

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>
#include <tenon/bind/nanobind.hpp>

#ifdef CORRECT
std::vector<tenon::tensor> all();
#else
std::vector<tenon::device_view<const float, 1>> all();
#endif

NB_MODULE(demo, m) { m.def("all", &all); }
