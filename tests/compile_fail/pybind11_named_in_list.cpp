// tests/compile_fail/pybind11_named_in_list.cpp: the arrays of a list have an extent with a name.
// must say: tenon::shape: a name relates parameters of a function, not the items of a list

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <tenon/bind/pybind11.hpp>

#ifdef CORRECT
std::size_t count(const std::vector<tenon::array<const float, tenon::shape<tenon::any, 3>>>& parts) {
#else
std::size_t count(const std::vector<tenon::array<const float, tenon::shape<"n", 3>>>& parts) {
#endif
    return parts.size();
}

PYBIND11_MODULE(demo, m) { m.def("count", &count); }
