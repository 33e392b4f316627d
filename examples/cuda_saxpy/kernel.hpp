// examples/cuda_saxpy/kernel.hpp: what the file for nvcc has for the others, which know nothing of CUDA.
#pragma once

#include <cstdint>

/// One axis of device memory: elements `step` apart.
template <class T>
struct strided {
    T* data;
    std::int64_t step;
};

/// Queues out = a * x + y on a stream of a CUDA device. Throws std::runtime_error with CUDA's own words.
void launch_saxpy(float a, strided<const float> x, strided<const float> y, strided<float> out,
                  std::int64_t count, int device, void* stream);

/// Whether this build has a kernel at all.
extern const bool has_cuda;
