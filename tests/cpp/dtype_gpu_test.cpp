// tests/cpp/dtype_gpu_test.cpp: the types of CUDA's and HIP's headers are elements, and are read and written
// in place.
//
// Built twice: with stand-ins for those headers everywhere, and with CUDA's own (TENON_CUDA_HEADERS) where
// they are installed.

#if defined(TENON_CUDA_HEADERS)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
#else
#include "stand_ins/cuda.hpp"
#include "stand_ins/hip.hpp"
#endif

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include <tenon/memory/allocate.hpp>
#include <tenon/tensor/device_view.hpp>
#include <tenon/tensor/tensor.hpp>
#include <tenon/tensor/view.hpp>
#include <tenon/value/dtype_names.hpp>

#include "support.hpp"

namespace user {
struct half {
    std::uint16_t bits;
};
}  // namespace user

namespace {

using namespace tenon_test;
using tenon::device_view;
using tenon::dtype;
using tenon::dtype_of;
using tenon::errc;
using tenon::tensor;
using tenon::view;
namespace abi = tenon::abi;
namespace tc = tenon::abi::type_code;

/// A type, and what it must be.
template <class T, std::uint8_t Code, std::uint8_t Bits, std::uint16_t Lanes = 1>
struct is_a {
    using type = T;
    static constexpr dtype expected{Code, Bits, Lanes};
};

template <class Row>
class GpuType : public testing::Test {};

using rows =
    testing::Types<is_a<__half, tc::float_, 16>, is_a<__nv_bfloat16, tc::bfloat, 16>,
                   is_a<__nv_fp8_e4m3, tc::float8_e4m3fn, 8>, is_a<__nv_fp8_e5m2, tc::float8_e5m2, 8>,
                   is_a<__nv_fp8_e8m0, tc::float8_e8m0fnu, 8>, is_a<__nv_fp6_e2m3, tc::float6_e2m3fn, 6>,
                   is_a<__nv_fp6_e3m2, tc::float6_e3m2fn, 6>, is_a<__nv_fp4_e2m1, tc::float4_e2m1fn, 4>,
                   is_a<__nv_fp4x2_e2m1, tc::float4_e2m1fn, 4, 2>
#if !defined(TENON_CUDA_HEADERS)
                   ,
                   is_a<__hip_bfloat16, tc::bfloat, 16>, is_a<hip_bfloat16, tc::bfloat, 16>,
                   is_a<__hip_fp8_e4m3, tc::float8_e4m3fn, 8>, is_a<__hip_fp8_e5m2, tc::float8_e5m2, 8>,
                   is_a<__hip_fp8_e4m3_fnuz, tc::float8_e4m3fnuz, 8>,
                   is_a<__hip_fp8_e5m2_fnuz, tc::float8_e5m2fnuz, 8>,
                   is_a<__hip_fp6_e2m3, tc::float6_e2m3fn, 6>, is_a<__hip_fp6_e3m2, tc::float6_e3m2fn, 6>,
                   is_a<__hip_fp4_e2m1, tc::float4_e2m1fn, 4>, is_a<__hip_fp4x2_e2m1, tc::float4_e2m1fn, 4, 2>
#endif
                   >;
TYPED_TEST_SUITE(GpuType, rows);

/// Memory whose every byte is another, and a tensor of four elements over it.
template <class T>
struct elements {
    std::array<std::uint8_t, 4 * sizeof(T)> bytes;
    explicit elements() {
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i + 1);
    }
    [[nodiscard]] tensor seen(std::uint64_t flags, tenon::device where = {}) {
        return made(
            {.data = bytes.data(), .shape = {4}, .type = dtype_of<T>, .where = where, .flags = flags});
    }
};

constexpr std::uint64_t padded = abi::flag::subbyte_padded;
constexpr tenon::device gpu{abi::device_code::cuda, 0};

TYPED_TEST(GpuType, IsItsElementType) {
    using T = typename TypeParam::type;
    static_assert(dtype_of<T> == TypeParam::expected && dtype_of<const T> == dtype_of<T>);
    static_assert(sizeof(T) == dtype_of<T>.itemsize() && tenon::viewable<T> && tenon::viewable<const T>);
    static_assert(tenon::addressable<T> == (TypeParam::expected.bits_per_element() % 8 == 0));
    EXPECT_TRUE(is_known(dtype_of<T>)) << name(dtype_of<T>);
}

TYPED_TEST(GpuType, IsReadAndWrittenInPlace) {
    using T = typename TypeParam::type;
    alignas(T) elements<T> memory;
    const tensor t = memory.seen(padded);
    const auto v = view<T, 1>::from(t);
    ASSERT_TRUE(v) << v.error();
    for (std::int64_t i = 0; i < 4; ++i)
        EXPECT_EQ(static_cast<const void*>(&(*v)[i]), &memory.bytes[static_cast<std::size_t>(i) * sizeof(T)]);
    (*v)[3] = (*v)[0];
    EXPECT_EQ(std::memcmp(&memory.bytes[3 * sizeof(T)], memory.bytes.data(), sizeof(T)), 0);
}

TYPED_TEST(GpuType, IsAddressedOnTheDevice) {
    using T = typename TypeParam::type;
    elements<T> memory;
    const auto v = device_view<const T, 1>::from(memory.seen(padded, gpu));
    ASSERT_TRUE(v) << v.error();
    EXPECT_EQ(static_cast<const void*>(v->data() + 3), &memory.bytes[3 * sizeof(T)]);
}

TYPED_TEST(GpuType, WhatSharesBytesHasNoAddress) {
    using T = typename TypeParam::type;
    alignas(T) elements<T> memory;
    const auto on_host = view<const T, 1>::from(memory.seen(0));
    const auto on_device = device_view<const T, 1>::from(memory.seen(0, gpu));
    if constexpr (tenon::addressable<T>) {
        EXPECT_TRUE(on_host && on_device);
    } else {
        expect_error(on_host, errc::refused, "dtype");
        expect_error(on_device, errc::refused, "dtype");
        EXPECT_TRUE(device_view<>::from(memory.seen(0, gpu))) << "untyped";
    }
}

TYPED_TEST(GpuType, OfAnotherTypeIsRefused) {
    using T = typename TypeParam::type;
    std::uint64_t word = 0;
    spec s{.data = &word, .shape = {1}, .type = {tc::int_, sizeof(T) * 8}};
    expect_error(view<const T, 1>::from(made(s)), errc::refused, "dtype");
}

TYPED_TEST(GpuType, LeavesAsItsElementType) {
    using T = typename TypeParam::type;
    const auto own = tensor::own(std::vector<T>(5));
    ASSERT_TRUE(own) << own.error();
    EXPECT_EQ(own->dtype(), TypeParam::expected);
    EXPECT_EQ(own->nbytes(), static_cast<std::int64_t>(5 * sizeof(T))) << "a byte each, at least";
    EXPECT_TRUE((view<T, 1>::from(*own)));
    const auto made_here = tenon::allocate<T>({2, 3});
    ASSERT_TRUE(made_here);
    EXPECT_TRUE((view<T, 2>::from(*made_here)));
}

#if defined(TENON_CUDA_HEADERS)

/// Elements of these bits, as the header reads them.
template <class T, class... Bits>
std::vector<float> values(Bits... bits) {
    using word = std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>;
    std::array<word, sizeof...(Bits)> memory{static_cast<word>(bits)...};
    const tensor t = made({.data = memory.data(),
                           .shape = {static_cast<std::int64_t>(memory.size())},
                           .type = dtype_of<T>,
                           .flags = padded});
    std::vector<float> out;
    const auto seen = view<const T, 1>::from(t);
    for (const T& value : *seen) out.push_back(static_cast<float>(value));
    return out;
}
using floats = std::vector<float>;

TEST(CudaType, ValuesAreThoseOfTheFormat) {
    EXPECT_EQ(values<__half>(0x3c00, 0xc000, 0x7bff), (floats{1, -2, 65504}));
    EXPECT_EQ(values<__nv_bfloat16>(0x3f80, 0xc000, 0x4049), (floats{1, -2, 3.140625F}));
    EXPECT_EQ(values<__nv_fp8_e4m3>(0x38, 0xc0, 0x7e), (floats{1, -2, 448})) << "finite, with NaN";
    EXPECT_EQ(values<__nv_fp8_e5m2>(0x3c, 0xc0, 0x7b), (floats{1, -2, 57344}));
    EXPECT_EQ(values<__nv_fp8_e8m0>(0x7f, 0x80, 0x7e), (floats{1, 2, 0.5F}));
    EXPECT_EQ(values<__nv_fp6_e2m3>(0x08, 0x30, 0x1f), (floats{1, -2, 7.5F}));
    EXPECT_EQ(values<__nv_fp6_e3m2>(0x0c, 0x30, 0x1f), (floats{1, -2, 28}));
    EXPECT_EQ(values<__nv_fp4_e2m1>(0x2, 0xc, 0x7), (floats{1, -2, 6}));
}

TEST(CudaType, TheFirstOfTwoIsInTheLowHalf) {
    std::uint8_t memory[] = {0xc2, 0x71};
    const tensor t = made({.data = memory, .shape = {2}, .type = dtype_of<__nv_fp4x2_e2m1>});
    const auto v = view<const __nv_fp4x2_e2m1, 1>::from(t);
    ASSERT_TRUE(v) << v.error();
    const auto first = static_cast<float2>((*v)[0]);
    const auto second = static_cast<float2>((*v)[1]);
    EXPECT_EQ((floats{first.x, first.y, second.x, second.y}), (floats{1, -2, 0.5F, 6}));
}

#else

// Not in this toolkit: a name that nothing can be made of.
static_assert(tenon::element<__hip_fp8_e8m0> && !tenon::viewable<__hip_fp8_e8m0>);

#endif

// A header that was not included changes nothing, and neither does a type of the same size.
static_assert(!tenon::element<user::half>);

}  // namespace

// A program's own word on such a type, from before Tenon knew it, still stands.
#if !defined(TENON_CUDA_HEADERS)
struct __nv_own {
    std::uint8_t bits;
};
namespace tenon::detail {
dlpack_is<tc::float8_e5m2, 8> gpu_type(tag<__nv_own>);
}  // namespace tenon::detail
template <>
struct tenon::dtype_traits<__nv_own> {
    static constexpr tenon::dtype value{tenon::abi::type_code::uint, 8};
};
static_assert(tenon::dtype_of<__nv_own> == tenon::dtype_of<std::uint8_t>);
#endif
