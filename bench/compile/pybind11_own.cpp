// bench/compile/pybind11_own.cpp: a module whose functions take pybind11's own array type.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

namespace py = pybind11;

PYBIND11_MODULE(m, m) {
    m.def("sum", [](py::array_t<float> x) {
        double total = 0;
        auto values = x.unchecked<1>();
        for (py::ssize_t i = 0; i < values.shape(0); ++i) total += values(i);
        return total;
    });
#if FUNCTIONS > 1
    m.def("rows", [](py::array_t<double, py::array::c_style> x) {
        double total = 0;
        auto values = x.unchecked<2>();
        for (py::ssize_t i = 0; i < values.shape(0); ++i) total += values(i, 0);
        return total;
    });
#endif
}
