// tests/compile_fail/pybind11_device_view_in_list.cpp: a list of device views is returned.
// must say: a view or a span keeps nothing alive: take and keep a tenon::array

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <tenon/bind/pybind11.hpp>

#ifdef CORRECT
std::vector<tenon::tensor> all();
#else
std::vector<tenon::device_view<const float, 1>> all();
#endif

PYBIND11_MODULE(demo, m) { m.def("all", &all); }
