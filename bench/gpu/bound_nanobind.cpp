// bench/gpu/bound_nanobind.cpp: the GPU page's functions by nanobind, with Tenon's arrays and its own.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <tenon/bind/nanobind.hpp>

#include "bound.h"
#include "foreign.h"

namespace nb = nanobind;

namespace {

using own_vector = nb::ndarray<const float, nb::ndim<1>, nb::device::cuda>;
using own_input = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cuda>;
using own_output = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cuda>;

// An ndarray tells no stream.
void take_own(const own_vector& x) {
    sink_on(x.data(), static_cast<std::int64_t>(x.ndim()), static_cast<std::int64_t>(x.shape(0)), x.stride(0),
            x.dtype().code + x.dtype().bits + x.device_type(), nullptr);
}

nb::ndarray<nb::pytorch, float, nb::device::cuda> wrap_own(nb::handle) {
    nb::capsule owner(foreign_memory(), [](void*) noexcept { foreign_release(); });
    return nb::ndarray<nb::pytorch, float, nb::device::cuda>(foreign_memory(), {GPU_EXTENT}, owner);
}

// The caller brings the memory of the result, and the stream.
void saxpy_own(float a, const own_input& x, const own_input& y, const own_output& out,
               std::uintptr_t stream) {
    if (x.shape(0) != y.shape(0) || x.shape(0) != out.shape(0))
        throw nb::value_error("x, y and out differ in length");
    if (const int code = launch_saxpy(a, x.data(), y.data(), out.data(),
                                      static_cast<std::int64_t>(x.shape(0)), reinterpret_cast<void*>(stream)))
        throw std::runtime_error(describe_error(code));
}

}  // namespace

NB_MODULE(bench_gpu_nanobind, m) {
    m.def("take", &take_vector, nb::arg("x"));
    m.def("like", &like_vector, nb::arg("x"));
    m.def("saxpy", &saxpy, nb::arg("a"), nb::arg("x"), nb::arg("y"));
    m.def("take_own", &take_own, nb::arg("x"));
    m.def("wrap_own", &wrap_own);
    m.def("saxpy_own", &saxpy_own, nb::arg("a"), nb::arg("x"), nb::arg("y"), nb::arg("out"),
          nb::arg("stream"));
    m.def("last_address", &last_address);
    m.def("last_stream", &last_stream);
    m.def("address", [] { return reinterpret_cast<std::uintptr_t>(foreign_memory()); });
    m.def("releases", [] { return static_cast<std::int64_t>(foreign_releases); });
}
