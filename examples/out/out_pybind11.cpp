// examples/out/out_pybind11.cpp: the function, bound by pybind11.
#include <pybind11/pybind11.h>
#include <tenon/bind/pybind11.hpp>

#include "clip.hpp"

PYBIND11_MODULE(out_pybind11, m) {
    using namespace pybind11::literals;
    m.def("clip", &clip, "x"_a, "low"_a, "high"_a, pybind11::kw_only(), "out"_a = pybind11::none());
}
