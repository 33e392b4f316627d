// tests/consume/nanobind.cpp: a module by tenon::nanobind.
#include <nanobind/nanobind.h>
#include <tenon/bind/nanobind.hpp>

NB_MODULE(consume_nanobind, module) {
    module.def("sum", [](tenon::array<const float, 1> x) {
        double total = 0;
        for (const float value : x) total += value;
        return total;
    });
}
