// bench/gpu/device.cu: the device's share of the GPU page, one library that all of its modules call.

#include "device.h"

#include <cstdio>

#include "saxpy.h"

int launch_saxpy(float a, const float* x, const float* y, float* out, int64_t n, void* stream) {
    const auto blocks = static_cast<unsigned>((n + GPU_BLOCK - 1) / GPU_BLOCK);
    saxpy<<<blocks, GPU_BLOCK, 0, static_cast<cudaStream_t>(stream)>>>(a, x, y, out, n);
    return cudaGetLastError();
}

float* foreign_memory() {
    static float* const memory = [] {
        void* made = nullptr;
        return cudaSetDevice(0) == cudaSuccess && cudaMalloc(&made, GPU_EXTENT * sizeof(float)) == cudaSuccess
                   ? static_cast<float*>(made)
                   : nullptr;
    }();
    return memory;
}

int wait_for_device() { return cudaDeviceSynchronize(); }

const char* describe_device() {
    static char text[400];
    cudaDeviceProp properties;
    int driver = 0;
    int status = cudaGetDeviceProperties(&properties, 0);
    if (status == cudaSuccess) status = cudaDriverGetVersion(&driver);
    if (status != cudaSuccess) return describe_error(status);
    const auto major = [](int version) { return version / 1000; };
    const auto minor = [](int version) { return version % 1000 / 10; };
    std::snprintf(text, sizeof text, "%s, CUDA %d.%d, driver for CUDA %d.%d", properties.name,
                  major(CUDART_VERSION), minor(CUDART_VERSION), major(driver), minor(driver));
    return text;
}

const char* describe_error(int code) { return cudaGetErrorString(static_cast<cudaError_t>(code)); }
