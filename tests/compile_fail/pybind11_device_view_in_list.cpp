// tests/compile_fail/pybind11_device_view_in_list.cpp: a function bound by pybind11 returns a list of device views.
// must say: a view or a span keeps nothing alive: take and keep a tenon::array or a tenon::tensor, and return one of these

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <tenon/bind/pybind11.hpp>

#ifdef CORRECT
std::vector<tenon::tensor> all();
#else
std::vector<tenon::device_view<const float, 1>> all();
#endif

PYBIND11_MODULE(demo, m) { m.def("all", &all); }
