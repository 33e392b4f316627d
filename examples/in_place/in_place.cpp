// examples/in_place/in_place.cpp: functions that write into the caller's array; a module without a binder.
#include <cmath>
#include <stdexcept>

#include <tenon/bind/function.hpp>

/// Scales each row to length 1. A row of zeros stays as it is.
static void normalise(tenon::array<float, 2> rows) {
    for (auto row : rows) {
        float length = 0;
        for (float value : row) length = std::hypot(length, value);
        if (length == 0) continue;
        for (float& value : row) value /= length;
    }
}

/// y += a * x.
static void add_scaled(tenon::array<float, 1> y, tenon::array<const float, 1> x, float a) {
    if (x.size() != y.size()) throw std::invalid_argument("add_scaled(): x and y must have the same length");
    for (std::int64_t i = 0; i < y.size(); ++i) y(i) += a * x(i);
}

static PyMethodDef methods[] = {
    tenon::py::function<&normalise>("normalise", {"rows"}, "Scales each row to length 1, in place."),
    tenon::py::function<&add_scaled>("add_scaled", {"y", "x", {"a", 1.0}}, "y += a * x, in place."),
    {}};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "in_place", nullptr, 0, methods, {}, {}, {}, {}};

PyMODINIT_FUNC PyInit_in_place() { return PyModuleDef_Init(&definition); }
