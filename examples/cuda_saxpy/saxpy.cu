// examples/cuda_saxpy/saxpy.cu: the kernel and its launch; the only file that nvcc sees.
#include <algorithm>
#include <stdexcept>
#include <string>

#include <cuda_runtime.h>

#include "kernel.hpp"

const bool has_cuda = true;

namespace {

__global__ void saxpy(float a, strided<const float> x, strided<const float> y, strided<float> out,
                      std::int64_t count) {
    const std::int64_t first = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
    const std::int64_t apart = gridDim.x * std::int64_t{blockDim.x};
    for (std::int64_t i = first; i < count; i += apart)
        out.data[i * out.step] = a * x.data[i * x.step] + y.data[i * y.step];
}

void check(cudaError_t status) {
    if (status == cudaSuccess) return;
    cudaGetLastError();  // CUDA remembers a failure: the next launch is not to be blamed for it
    throw std::runtime_error(std::string("saxpy(): ") + cudaGetErrorString(status));
}

/// Makes a device the current one, and what it was before again at the end.
class current_device {
public:
    explicit current_device(int device) {
        check(cudaGetDevice(&before_));
        check(cudaSetDevice(device));
    }
    current_device(const current_device&) = delete;
    current_device& operator=(const current_device&) = delete;
    ~current_device() { cudaSetDevice(before_); }

private:
    int before_ = 0;
};

}  // namespace

void launch_saxpy(float a, strided<const float> x, strided<const float> y, strided<float> out,
                  std::int64_t count, int device, void* stream) {
    if (count == 0) return;
    constexpr unsigned threads = 256;
    const auto blocks = std::min<std::int64_t>((count + threads - 1) / threads, 65535);
    const current_device there(device);
    saxpy<<<static_cast<unsigned>(blocks), threads, 0, static_cast<cudaStream_t>(stream)>>>(a, x, y, out,
                                                                                            count);
    check(
        cudaGetLastError());  // of the launch; what goes wrong later is told by whoever waits for the stream
}
