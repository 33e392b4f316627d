// examples/template_pybind11/src/demo.cpp: the module demo, by pybind11.
#include <pybind11/pybind11.h>
#include <tenon/bind/pybind11.hpp>

static auto scale(tenon::array<const float, 1> x, float s) {
    auto out = tenon::empty_like(x);
    for (std::int64_t i = 0; i < x.size(); ++i) out(i) = s * x(i);
    return out;
}

PYBIND11_MODULE(demo, module) {
    module.def("scale", &scale, pybind11::arg("x"), pybind11::arg("s") = 2.0f, "Multiplies every element.");
}
