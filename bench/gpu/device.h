/* bench/gpu/device.h: what all contenders share of the device: the launch, foreign memory, the waiting. */

#ifndef TENON_BENCH_GPU_DEVICE_H
#define TENON_BENCH_GPU_DEVICE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How many float32 values the samples and the foreign memory have. */
#define GPU_EXTENT 1024
/* Threads of a block; the launch by cuda.core has as many. */
#define GPU_BLOCK 256

/* Enqueues out = a * x + y on the stream; NULL and 1 are the default one. Returns a cudaError_t. */
int launch_saxpy(float a, const float* x, const float* y, float* out, int64_t n, void* stream);

/* GPU_EXTENT floats on device 0 that belong to no library, allocated at the first call. NULL on failure. */
float* foreign_memory(void);

/* Waits until the device has nothing left to do. Returns a cudaError_t. */
int wait_for_device(void);

/* "NVIDIA H200, CUDA 13.0, driver for CUDA 13.0"; what went wrong, where something does. */
const char* describe_device(void);

/* A cudaError_t in words. */
const char* describe_error(int code);

#ifdef __cplusplus
}
#endif

#endif
