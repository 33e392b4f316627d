// tests/python/native/bound_pybind11.cpp: the shared functions and overloads, bound by pybind11.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <tenon/bind/pybind11.hpp>

namespace binder = pybind11;

#include "bound_binders.hpp"

using namespace pybind11::literals;

PYBIND11_MODULE(bound_pybind11, m) {
    bound::bind_all(m);
    auto explained = m.def_submodule("explained", "The same overloads, explained from the first call on.");
    explained.def("by_dtype", [](const tenon::array<const float, 1>&) { return "float32"; }, "x"_a);
    explained.def("by_dtype", [](const tenon::array<const double, 1>&) { return "float64"; }, "x"_a);
    tenon::explain_overloads(explained);
}
