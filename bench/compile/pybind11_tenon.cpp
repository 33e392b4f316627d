// bench/compile/pybind11_tenon.cpp: the same module, whose functions take Tenon's array type by pybind11.
#include <pybind11/pybind11.h>
#include <tenon/bind/pybind11.hpp>

PYBIND11_MODULE(m, m) {
    m.def("sum", [](tenon::array<const float, 1> x) {
        double total = 0;
        for (std::int64_t i = 0; i < x.shape(0); ++i) total += x(i);
        return total;
    });
#if FUNCTIONS > 1
    m.def("rows", [](tenon::array<const double, 2, tenon::c_contiguous> x) {
        double total = 0;
        for (std::int64_t i = 0; i < x.shape(0); ++i) total += x(i, 0);
        return total;
    });
#endif
}
