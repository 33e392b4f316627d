// examples/cuda_saxpy/no_cuda.cpp: stands in for saxpy.cu where there is no nvcc.
#include <stdexcept>

#include "kernel.hpp"

const bool has_cuda = false;

void launch_saxpy(float, strided<const float>, strided<const float>, strided<float>, std::int64_t, int,
                  void*) {
    throw std::runtime_error("saxpy(): built without CUDA: install nvcc and build again, or pass CPU arrays");
}
