// tests/gpu/element_types_test.cu: kernels work on CUDA's own element types through device_view, and the host
// on the same through view.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "support.hpp"

namespace {

using namespace tenon_test;
using tenon::device_view;
using tenon::dtype_of;
using tenon::typed;
using tenon::view;

/// A type, and the bits of 1, 2 and what it makes of 3.
template <class T, unsigned One, unsigned Two, unsigned Three>
struct bits_of {
    using type = T;
    using word = std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>;
    static constexpr word one = One, two = Two, three = Three;
};

template <class Row>
class ElementType : public testing::Test {};

using rows = testing::Types<bits_of<__half, 0x3c00, 0x4000, 0x4200>,         //
                            bits_of<__nv_bfloat16, 0x3f80, 0x4000, 0x4040>,  //
                            bits_of<__nv_fp8_e4m3, 0x38, 0x40, 0x44>,        //
                            bits_of<__nv_fp8_e5m2, 0x3c, 0x40, 0x42>,        //
                            bits_of<__nv_fp8_e8m0, 0x7f, 0x80, 0x81>,        // the next power of two
                            bits_of<__nv_fp6_e2m3, 0x08, 0x10, 0x14>,        //
                            bits_of<__nv_fp6_e3m2, 0x0c, 0x10, 0x12>,        //
                            bits_of<__nv_fp4_e2m1, 0x2, 0x4, 0x5>,           //
                            bits_of<__nv_fp4x2_e2m1, 0x22, 0x44, 0x55>>;     // two in a byte
TYPED_TEST_SUITE(ElementType, rows);

template <class T>
__host__ __device__ T sum(T a, T b) {
    if constexpr (std::is_same_v<T, __nv_fp4x2_e2m1>) {
        const auto x = static_cast<float2>(a);
        const auto y = static_cast<float2>(b);
        return T(float2{x.x + y.x, x.y + y.y});
    } else {
        return T(static_cast<float>(a) + static_cast<float>(b));
    }
}

template <class T>
__global__ void add(const T* x, const T* y, T* out, std::int64_t count) {
    static_assert(sizeof(T) == dtype_of<T>.itemsize());
    if (const std::int64_t i = here(); i < count) out[i] = sum(x[i], y[i]);
}

constexpr std::size_t count = 1000;

template <class T, class Word>
std::vector<T> elements(Word even, Word odd) {
    std::vector<T> out(count);
    for (std::size_t i = 0; i < count; ++i)
        std::memcpy(static_cast<void*>(&out[i]), i % 2 == 0 ? &even : &odd, sizeof(T));
    return out;
}

/// Adds two vectors where they are, and says where that was.
template <class T>
tenon::result<bool> add_all(const tenon::tensor& x, const tenon::tensor& y, const tenon::tensor& out) {
    return dispatch(
        together(typed<const T, 1>(x), typed<const T, 1>(y), typed<T, 1>(out)),
        [](view<const T, 1> a, view<const T, 1> b, view<T, 1> c) {
            for (std::int64_t i = 0; i < c.size(); ++i) c(i) = sum<T>(a(i), b(i));
            return false;
        },
        [](device_view<const T, 1> a, device_view<const T, 1> b, device_view<T, 1> c) {
            add<<<blocks(c.size()), threads, 0, static_cast<cudaStream_t>(c.stream())>>>(a.data(), b.data(),
                                                                                         c.data(), c.size());
            check(cudaGetLastError());
            return true;
        });
}

template <class Row>
void expect_sums(tenon::device x_at, tenon::device y_at, tenon::device out_at, bool on_device) {
    using T = typename Row::type;
    const auto x = vector_of(x_at, elements<T>(Row::one, Row::one));
    const auto y = vector_of(y_at, elements<T>(Row::one, Row::two));
    const auto out = vector_of(out_at, elements<T>(Row::one, Row::one));
    ASSERT_EQ(out.dtype(), dtype_of<T>);
    const auto ran = add_all<T>(x, y, out);
    ASSERT_TRUE(ran) << ran.error().message();
    EXPECT_EQ(*ran, on_device);
    const auto seen = values_of<T>(out);
    const auto expected = elements<T>(Row::two, Row::three);
    for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(std::memcmp(&seen[i], &expected[i], sizeof(T)), 0) << name(dtype_of<T>) << " at " << i;
}

TYPED_TEST(ElementType, IsAddedByTheHost) { expect_sums<TypeParam>(cpu, cpu, cpu, false); }

TYPED_TEST(ElementType, IsAddedByAKernel) {
    TENON_NEED_GPU();
    expect_sums<TypeParam>(gpu, gpu, gpu, true);
}

TYPED_TEST(ElementType, IsAddedByAKernelInManagedAndPinnedMemory) {
    TENON_NEED_GPU();
    expect_sums<TypeParam>(managed, gpu, pinned, true);
    expect_sums<TypeParam>(pinned, gpu, managed, true);
}

/// What a kernel makes of an element type, and of truth values.
template <class T>
__global__ void look(const tenon::bool8* truths, tenon::bool8* opposites, std::uint32_t* seen) {
    constexpr tenon::dtype type = dtype_of<T>;
    opposites[0] = !truths[0];
    opposites[1] = !truths[1];
    seen[0] = type.code;
    seen[1] = type.itemsize();
    seen[2] = type.is_floating() && type == dtype_of<const T> ? type.lanes : 0;
}

TEST(InAKernel, ElementTypesAndTruthValuesAreWhatTheyAre) {
    TENON_NEED_GPU();
    const auto truths = vector_of<std::uint8_t>(gpu, {0, 2});
    const auto opposites = vector_of<std::uint8_t>(gpu, {9, 9});
    const auto seen = vector_of<std::uint32_t>(gpu, {0, 0, 0});
    look<__nv_fp4x2_e2m1><<<1, 1>>>(static_cast<const tenon::bool8*>(truths.data()),
                                    static_cast<tenon::bool8*>(opposites.data()),
                                    static_cast<std::uint32_t*>(seen.data()));
    check(cudaGetLastError());
    EXPECT_EQ(values_of<std::uint8_t>(opposites), (std::vector<std::uint8_t>{1, 0}));
    EXPECT_EQ(values_of<std::uint32_t>(seen),
              (std::vector<std::uint32_t>{tenon::abi::type_code::float4_e2m1fn, 1, 2}));
}

}  // namespace
