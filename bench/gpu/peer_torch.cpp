// bench/gpu/peer_torch.cpp: the GPU page's functions as a torch C++ extension, with its usual checks.

#include <c10/cuda/CUDAStream.h>
#include <torch/extension.h>

#include "device.h"
#include "foreign.h"
#include "stream_sink.h"

namespace {

void check_vector(const torch::Tensor& x) {
    TORCH_CHECK(x.is_cuda() && x.dim() == 1 && x.scalar_type() == torch::kFloat32,
                "expected a float32 vector on CUDA");
}

cudaStream_t current_stream(const torch::Tensor& x) {
    return c10::cuda::getCurrentCUDAStream(x.get_device());
}

void take(const torch::Tensor& x) {
    check_vector(x);
    sink_on(x.const_data_ptr<float>(), x.dim(), x.size(0), x.stride(0),
            static_cast<std::int64_t>(x.scalar_type()) + static_cast<std::int64_t>(x.device().type()),
            current_stream(x));
}

torch::Tensor like(const torch::Tensor& x) {
    check_vector(x);
    return torch::empty_like(x);
}

torch::Tensor wrap(const torch::Tensor&) {
    return torch::from_blob(
        foreign_memory(), {GPU_EXTENT}, [](void*) { foreign_release(); },
        torch::dtype(torch::kFloat32).device(torch::kCUDA, 0));
}

torch::Tensor saxpy(double a, const torch::Tensor& x, const torch::Tensor& y) {
    check_vector(x);
    check_vector(y);
    TORCH_CHECK(x.is_contiguous() && y.is_contiguous(), "expected contiguous vectors");
    TORCH_CHECK(x.size(0) == y.size(0), "x and y differ in length");
    torch::Tensor out = torch::empty_like(x);
    const int code = launch_saxpy(static_cast<float>(a), x.const_data_ptr<float>(), y.const_data_ptr<float>(),
                                  out.mutable_data_ptr<float>(), x.numel(), current_stream(x));
    TORCH_CHECK(code == 0, describe_error(code));
    return out;
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("take", &take, py::arg("x"));
    m.def("like", &like, py::arg("x"));
    m.def("wrap", &wrap, py::arg("like"));
    m.def("saxpy", &saxpy, py::arg("a"), py::arg("x"), py::arg("y"));
    m.def("last_address", [] { return static_cast<std::uintptr_t>(sink_data); });
    m.def("last_stream", [] { return static_cast<std::uintptr_t>(sink_stream); });
    m.def("address", [] { return reinterpret_cast<std::uintptr_t>(foreign_memory()); });
    m.def("releases", [] { return static_cast<std::int64_t>(foreign_releases); });
}
