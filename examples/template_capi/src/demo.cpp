// examples/template_capi/src/demo.cpp: the module demo, by the C API.
#include <tenon/bind/function.hpp>

static auto scale(tenon::array<const float, 1> x, float s) {
    auto out = tenon::empty_like(x);
    for (std::int64_t i = 0; i < x.size(); ++i) out(i) = s * x(i);
    return out;
}

static PyMethodDef methods[] = {
    tenon::py::function<&scale>("scale", {"x", {"s", 2.0}}, "Multiplies every element."), {}};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "demo", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit_demo() { return PyModuleDef_Init(&definition); }
