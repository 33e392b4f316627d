// tests/consume/pybind11.cpp: a module by tenon::pybind11.
#include <pybind11/pybind11.h>
#include <tenon/bind/pybind11.hpp>

PYBIND11_MODULE(consume_pybind11, module) {
    module.def("sum", [](tenon::array<const float, 1> x) {
        double total = 0;
        for (const float value : x) total += value;
        return total;
    });
}
