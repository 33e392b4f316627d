// examples/out/out_nanobind.cpp: the function, bound by nanobind.
#include <nanobind/nanobind.h>
#include <tenon/bind/nanobind.hpp>

#include "clip.hpp"

NB_MODULE(out_nanobind, m) {
    using namespace nanobind::literals;
    m.def("clip", &clip, "x"_a, "low"_a, "high"_a, nanobind::kw_only(), "out"_a = nanobind::none());
}
