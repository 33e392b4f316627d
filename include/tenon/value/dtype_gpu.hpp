// tenon/value/dtype_gpu.hpp: which element types the C++ types of CUDA's and HIP's headers are.
#pragma once

#include <cstdint>

#include <tenon/abi/dlpack.hpp>

// Nothing of CUDA or HIP is included here. A header that came before this one is known by a macro it defines;
// what the header of an older toolkit lacks stays a name without a definition.
#if defined(__CUDA_FP8_TYPES_EXIST__)
struct __nv_fp8_e8m0;
#endif
#if defined(_HIP_INCLUDE_HIP_AMD_DETAIL_HIP_FP8_H_)
struct __hip_fp8_e4m3;
struct __hip_fp8_e5m2;
struct __hip_fp8_e8m0;
struct __hip_fp8_e4m3_fnuz;
struct __hip_fp8_e5m2_fnuz;
#endif
#if defined(HIP_INCLUDE_HIP_HIP_FP6_H)
struct __hip_fp6_e2m3;
struct __hip_fp6_e3m2;
#endif
#if defined(HIP_INCLUDE_HIP_HIP_FP4_H)
struct __hip_fp4_e2m1;
struct __hip_fp4x2_e2m1;
#endif

namespace tenon::detail {

namespace tc = abi::type_code;

template <class T>
struct tag {};
template <std::uint8_t Code, std::uint8_t Bits, std::uint16_t Lanes = 1>
struct dlpack_is;

// The element type that a type of a GPU toolkit is: what `gpu_type` of it returns, which is never called.
// A single fp6 or fp4 value is a byte to C++: it stands for padded elements. Packed fp4 is `x2`, two in a
// byte, as PyTorch has it.

#if defined(__CUDA_FP16_TYPES_EXIST__) || defined(HIP_INCLUDE_HIP_AMD_DETAIL_HIP_FP16_H)
dlpack_is<tc::float_, 16> gpu_type(tag<__half>);
#endif

#if defined(__CUDA_BF16_TYPES_EXIST__)
dlpack_is<tc::bfloat, 16> gpu_type(tag<__nv_bfloat16>);
#endif
#if defined(__CUDA_FP8_TYPES_EXIST__)
dlpack_is<tc::float8_e4m3fn, 8> gpu_type(tag<__nv_fp8_e4m3>);
dlpack_is<tc::float8_e5m2, 8> gpu_type(tag<__nv_fp8_e5m2>);
dlpack_is<tc::float8_e8m0fnu, 8> gpu_type(tag<__nv_fp8_e8m0>);
#endif
#if defined(__CUDA_FP6_TYPES_EXIST__)
dlpack_is<tc::float6_e2m3fn, 6> gpu_type(tag<__nv_fp6_e2m3>);
dlpack_is<tc::float6_e3m2fn, 6> gpu_type(tag<__nv_fp6_e3m2>);
#endif
#if defined(__CUDA_FP4_TYPES_EXIST__)
dlpack_is<tc::float4_e2m1fn, 4> gpu_type(tag<__nv_fp4_e2m1>);
dlpack_is<tc::float4_e2m1fn, 4, 2> gpu_type(tag<__nv_fp4x2_e2m1>);
#endif

#if defined(_HIP_INCLUDE_HIP_AMD_DETAIL_HIP_BF16_H_)
dlpack_is<tc::bfloat, 16> gpu_type(tag<__hip_bfloat16>);
#endif
#if defined(_HIP_INCLUDE_HIP_AMD_DETAIL_HIP_BFLOAT16_H_)
dlpack_is<tc::bfloat, 16> gpu_type(tag<hip_bfloat16>);
#endif
#if defined(_HIP_INCLUDE_HIP_AMD_DETAIL_HIP_FP8_H_)
dlpack_is<tc::float8_e4m3fn, 8> gpu_type(tag<__hip_fp8_e4m3>);
dlpack_is<tc::float8_e5m2, 8> gpu_type(tag<__hip_fp8_e5m2>);
dlpack_is<tc::float8_e8m0fnu, 8> gpu_type(tag<__hip_fp8_e8m0>);
dlpack_is<tc::float8_e4m3fnuz, 8> gpu_type(tag<__hip_fp8_e4m3_fnuz>);
dlpack_is<tc::float8_e5m2fnuz, 8> gpu_type(tag<__hip_fp8_e5m2_fnuz>);
#endif
#if defined(HIP_INCLUDE_HIP_HIP_FP6_H)
dlpack_is<tc::float6_e2m3fn, 6> gpu_type(tag<__hip_fp6_e2m3>);
dlpack_is<tc::float6_e3m2fn, 6> gpu_type(tag<__hip_fp6_e3m2>);
#endif
#if defined(HIP_INCLUDE_HIP_HIP_FP4_H)
dlpack_is<tc::float4_e2m1fn, 4> gpu_type(tag<__hip_fp4_e2m1>);
dlpack_is<tc::float4_e2m1fn, 4, 2> gpu_type(tag<__hip_fp4x2_e2m1>);
#endif

}  // namespace tenon::detail
