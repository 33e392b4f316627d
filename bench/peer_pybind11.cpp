// bench/peer_pybind11.cpp: arguments as array, array_t<float> and buffer, and memory handed out as an array.

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include "sink.h"
#include "source.h"

namespace py = pybind11;

namespace {

void take_array(const py::array& a) {
    sink(a.data(), a.ndim(), a.ndim() ? a.shape(0) : 0, a.ndim() ? a.strides(0) : 0, a.flags());
}

void take_buffer(const py::buffer& b) {
    py::buffer_info info = b.request();
    sink(info.ptr, info.ndim, info.ndim ? info.shape[0] : 0, info.ndim ? info.strides[0] : 0,
         info.format[0] + info.readonly);
}

py::array_t<float> give_array(py::handle) {
    py::capsule owner(source_memory, [](void*) { source_release(); });
    return py::array_t<float>({SOURCE_EXTENT, SOURCE_EXTENT}, source_memory, owner);
}

}  // namespace

PYBIND11_MODULE(bench_pybind11, m) {
    m.def("empty", [](py::handle) {});
    m.def("array", [](const py::array& a) { take_array(a); });
    m.def("array_t", [](const py::array_t<float>& a) { take_array(a); });
    m.def("buffer", [](const py::buffer& b) { take_buffer(b); });
    m.def("last_address", [] { return static_cast<uintptr_t>(sink_data); });
    m.def("to_numpy", give_array);
    m.def("address", [] { return reinterpret_cast<uintptr_t>(source_memory); });
    m.def("releases", [] { return static_cast<int64_t>(source_releases); });
}
