// tests/consume/python.cpp: a module by tenon::python and the C API alone.
#include <tenon/bind/function.hpp>

namespace {

double sum(tenon::array<const float, 1> x) {
    double total = 0;
    for (const float value : x) total += value;
    return total;
}

PyMethodDef methods[] = {tenon::py::function<&sum>("sum", {"x"}, "Adds."), {}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "consume_python", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_consume_python() { return PyModuleDef_Init(&definition); }
