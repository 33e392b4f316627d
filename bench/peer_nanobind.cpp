// bench/peer_nanobind.cpp: takes one argument as nanobind's ndarray, read-only and writable.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "sink.h"

namespace nb = nanobind;

namespace {

template <typename Array>
void take(const Array& a) {
    sink(a.data(), static_cast<int64_t>(a.ndim()), a.ndim() ? static_cast<int64_t>(a.shape(0)) : 0,
         a.ndim() ? a.stride(0) : 0, a.dtype().code + a.dtype().bits + a.device_type());
}

}  // namespace

NB_MODULE(bench_nanobind, m) {
    m.def("empty", [](nb::handle) {});
    m.def("ndarray_ro", [](const nb::ndarray<nb::ro>& a) { take(a); });
    m.def("ndarray", [](const nb::ndarray<>& a) { take(a); });
    m.def("last_address", [] { return static_cast<uintptr_t>(sink_data); });
}
