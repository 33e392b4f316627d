// tests/cpp/stand_ins/hip.hpp: what Tenon knows of HIP's headers for AMD: the macro each defines, names and
// sizes. Its `__half` is CUDA's stand-in: the two never meet.
#pragma once

#include <cstdint>

// hip_bf16.h
#define _HIP_INCLUDE_HIP_AMD_DETAIL_HIP_BF16_H_
struct alignas(2) __hip_bfloat16 {
    std::uint16_t bits;
};

// hip_bfloat16.h, to a compiler for the host: a name for a struct that has none
#define _HIP_INCLUDE_HIP_AMD_DETAIL_HIP_BFLOAT16_H_
typedef struct {
    std::uint16_t data;
} hip_bfloat16;

// hip_fp8.h; without __hip_fp8_e8m0, as that of ROCm 6
#define _HIP_INCLUDE_HIP_AMD_DETAIL_HIP_FP8_H_
struct __hip_fp8_e4m3 {
    std::uint8_t bits;
};
struct __hip_fp8_e5m2 {
    std::uint8_t bits;
};
struct __hip_fp8_e4m3_fnuz {
    std::uint8_t bits;
};
struct __hip_fp8_e5m2_fnuz {
    std::uint8_t bits;
};

// hip_fp6.h
#define HIP_INCLUDE_HIP_HIP_FP6_H
struct __hip_fp6_e2m3 {
    std::uint8_t bits;
};
struct __hip_fp6_e3m2 {
    std::uint8_t bits;
};

// hip_fp4.h
#define HIP_INCLUDE_HIP_HIP_FP4_H
struct __hip_fp4_e2m1 {
    std::uint8_t bits;
};
struct __hip_fp4x2_e2m1 {
    std::uint8_t bits;
};
