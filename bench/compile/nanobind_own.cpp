// bench/compile/nanobind_own.cpp: a module whose functions take nanobind's own array type.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

NB_MODULE(m, m) {
    m.def("sum", [](const nb::ndarray<const float, nb::ndim<1>>& x) {
        double total = 0;
        auto values = x.view();
        for (std::size_t i = 0; i < values.shape(0); ++i) total += values(i);
        return total;
    });
#if FUNCTIONS > 1
    m.def("rows", [](const nb::ndarray<const double, nb::ndim<2>, nb::c_contig>& x) {
        double total = 0;
        auto values = x.view();
        for (std::size_t i = 0; i < values.shape(0); ++i) total += values(i, 0);
        return total;
    });
#endif
}
