/* bench/gpu/saxpy.h: the kernel of the whole call, for nvcc and, as text, for cuda.core. */

extern "C" __global__ void saxpy(float a, const float* x, const float* y, float* out, long long n) {
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a * x[i] + y[i];
}
