// tests/cpp/stand_ins/cuda.hpp: what Tenon knows of CUDA's headers: the macro each defines, names and sizes.
#pragma once

#include <cstdint>

// cuda_fp16.h
#define __CUDA_FP16_TYPES_EXIST__
struct alignas(2) __half {
    std::uint16_t bits;
};

// cuda_bf16.h
#define __CUDA_BF16_TYPES_EXIST__
struct alignas(2) __nv_bfloat16 {
    std::uint16_t bits;
};

// cuda_fp8.h
#define __CUDA_FP8_TYPES_EXIST__
struct __nv_fp8_e4m3 {
    std::uint8_t bits;
};
struct __nv_fp8_e5m2 {
    std::uint8_t bits;
};
struct __nv_fp8_e8m0 {
    std::uint8_t bits;
};

// cuda_fp6.h
#define __CUDA_FP6_TYPES_EXIST__
struct __nv_fp6_e2m3 {
    std::uint8_t bits;
};
struct __nv_fp6_e3m2 {
    std::uint8_t bits;
};

// cuda_fp4.h
#define __CUDA_FP4_TYPES_EXIST__
struct __nv_fp4_e2m1 {
    std::uint8_t bits;
};
struct __nv_fp4x2_e2m1 {
    std::uint8_t bits;
};
