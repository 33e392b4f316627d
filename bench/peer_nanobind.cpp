// bench/peer_nanobind.cpp: arguments as nanobind's ndarray, and memory handed to Python as one.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "sink.h"
#include "source.h"

namespace nb = nanobind;

namespace {

template <typename Array>
void take(const Array& a) {
    sink(a.data(), static_cast<int64_t>(a.ndim()), a.ndim() ? static_cast<int64_t>(a.shape(0)) : 0,
         a.ndim() ? a.stride(0) : 0, a.dtype().code + a.dtype().bits + a.device_type());
}

// For each framework its own return type; array_api is nanobind's own producer object.
template <typename Framework>
nb::ndarray<Framework, float> give(nb::handle) {
    nb::capsule owner(source_memory, [](void*) noexcept { source_release(); });
    return nb::ndarray<Framework, float>(source_memory, {SOURCE_EXTENT, SOURCE_EXTENT}, owner);
}

}  // namespace

NB_MODULE(bench_nanobind, m) {
    m.def("empty", [](nb::handle) {});
    m.def("ndarray_ro", [](const nb::ndarray<nb::ro>& a) { take(a); });
    m.def("ndarray", [](const nb::ndarray<>& a) { take(a); });
    m.def("last_address", [] { return static_cast<uintptr_t>(sink_data); });
    m.def("to_torch", give<nb::pytorch>);
    m.def("to_numpy", give<nb::numpy>);
    m.def("to_capsule", give<nb::no_framework>);
    m.def("to_producer", give<nb::array_api>);
    m.def("address", [] { return reinterpret_cast<uintptr_t>(source_memory); });
    m.def("releases", [] { return static_cast<int64_t>(source_releases); });
}
