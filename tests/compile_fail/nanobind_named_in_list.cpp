// tests/compile_fail/nanobind_named_in_list.cpp: the arrays of a list have an extent with a name.
// must say: tenon::shape: a name relates parameters of a function, not the items of a list

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>
#include <tenon/bind/nanobind.hpp>

#ifdef CORRECT
std::size_t count(const std::vector<tenon::array<const float, tenon::shape<tenon::any, 3>>>& parts) {
#else
std::size_t count(const std::vector<tenon::array<const float, tenon::shape<"n", 3>>>& parts) {
#endif
    return parts.size();
}

NB_MODULE(demo, m) { m.def("count", &count); }
