// examples/template_nanobind/src/demo.cpp: the module demo, by nanobind.
#include <nanobind/nanobind.h>
#include <tenon/bind/nanobind.hpp>

static auto scale(tenon::array<const float, 1> x, float s) {
    auto out = tenon::empty_like(x);
    for (std::int64_t i = 0; i < x.size(); ++i) out(i) = s * x(i);
    return out;
}

NB_MODULE(demo, module) {
    module.def("scale", &scale, nanobind::arg("x"), nanobind::arg("s") = 2.0f, "Multiplies every element.");
}
