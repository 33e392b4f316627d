// bench/bound_nanobind.cpp: a constrained argument by nanobind, as its own ndarray and as Tenon's array.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <tenon/bind/nanobind.hpp>

#include "bound.h"

namespace nb = nanobind;

NB_MODULE(bench_bound_nanobind, m) {
    m.def("empty", [](nb::handle) {}, nb::arg("x"));
    m.def(
        "own",
        [](const nb::ndarray<const float, nb::ndim<2>>& a) {
            sink(a.data(), static_cast<int64_t>(a.ndim()), static_cast<int64_t>(a.shape(0)), a.stride(0),
                 a.dtype().code + a.dtype().bits + a.device_type());
        },
        nb::arg("x"));
    m.def("tenon", &take_matrix, nb::arg("x"));
    m.def("last_address", &last_address);
}
