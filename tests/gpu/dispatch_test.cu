// tests/gpu/dispatch_test.cu: the right function runs for device, managed, pinned and host memory, and reads
// what the other wrote.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support.hpp"

namespace {

using namespace tenon_test;
using tenon::device_view;
using tenon::dispatch;
using tenon::together;
using tenon::typed;
using tenon::view;
using floats = std::vector<float>;

__global__ void scale(const float* x, float factor, float* out, std::int64_t count) {
    if (const std::int64_t i = here(); i < count) out[i] = factor * x[i];
}
void launch_scale(device_view<const float, 1> x, float factor, device_view<float, 1> out) {
    scale<<<blocks(out.size()), threads, 0, static_cast<cudaStream_t>(out.stream())>>>(
        x.data(), factor, out.data(), out.size());
    check(cudaGetLastError());
}

/// Doubles on the host and multiplies by ten on the device: what comes out says where it ran.
std::string run(const tenon::tensor& x, const tenon::tensor& out) {
    const auto ran = dispatch(
        together(typed<const float, 1>(x), typed<float, 1>(out)),
        [](view<const float, 1> from, view<float, 1> to) {
            for (std::int64_t i = 0; i < to.size(); ++i) to(i) = 2 * from(i);
            return std::string("host");
        },
        [](device_view<const float, 1> from, device_view<float, 1> to) {
            launch_scale(from, 10, to);
            return "device, out on " + to.device_name();
        });
    return ran ? *ran : ran.error().message();
}

class GpuDispatch : public testing::Test {
protected:
    void SetUp() override { TENON_NEED_GPU(); }
    floats numbers = {1, 2, 3};
};

TEST_F(GpuDispatch, OneTensorGoesToWhoCanReadIt) {
    for (const tenon::device where : {cpu, gpu, pinned, managed}) {
        const auto t = vector_of(where, numbers);
        const auto sum = dispatch<const float, 1>(
            t,
            [](view<const float, 1> v) {
                float total = 0;
                for (const float x : v) total += x;
                return total;
            },
            [](device_view<const float, 1>) { return -1.0F; });
        ASSERT_TRUE(sum) << sum.error().message();
        EXPECT_EQ(*sum, where == gpu ? -1.0F : 6.0F) << name(where);
    }
}

TEST_F(GpuDispatch, TogetherOnTheHost) {
    for (const tenon::device x_at : {cpu, pinned, managed})
        for (const tenon::device out_at : {cpu, pinned, managed}) {
            const auto x = vector_of(x_at, numbers), out = vector_of(out_at, numbers);
            EXPECT_EQ(run(x, out), "host");
            EXPECT_EQ(values_of<float>(out), (floats{2, 4, 6})) << name(x_at) << " " << name(out_at);
        }
}

TEST_F(GpuDispatch, TogetherOnTheDevice) {
    using places = std::pair<tenon::device, tenon::device>;
    for (const auto& [x_at, out_at] : {places{gpu, gpu}, places{gpu, managed}, places{managed, gpu},
                                       places{gpu, pinned}, places{pinned, gpu}}) {
        const auto x = vector_of(x_at, numbers), out = vector_of(out_at, numbers);
        EXPECT_EQ(run(x, out), "device, out on " + name(out_at));
        EXPECT_EQ(values_of<float>(out), (floats{10, 20, 30})) << name(x_at) << " " << name(out_at);
    }
}

TEST_F(GpuDispatch, HostMemoryBesideDeviceMemoryIsRefused) {
    const auto x = vector_of(cpu, numbers), out = vector_of(gpu, numbers);
    EXPECT_EQ(
        run(x, out),
        "tensor 1: device: not where the others are (got cpu, expected cuda:0); move all of them to one "
        "device, or all to the CPU");
    EXPECT_EQ(run(out, x).substr(0, 16), "tensor 2: device");
    EXPECT_EQ(values_of<float>(out), numbers) << "nothing ran";
}

TEST_F(GpuDispatch, ManagedAndPinnedMemoryIsReadByBoth) {
    for (const tenon::device where : {managed, pinned}) {
        const auto x = vector_of(where, numbers), out = vector_of(where, floats(3));
        const auto from = device_view<const float, 1>::from(x);
        const auto to = device_view<float, 1>::from(out);
        ASSERT_TRUE(from && to) << name(where);
        EXPECT_EQ(to->device(), where);
        launch_scale(*from, 5, *to);
        check(cudaDeviceSynchronize());
        const auto seen = view<float, 1>::from(out);
        ASSERT_TRUE(seen) << seen.error().message();
        EXPECT_EQ((floats{(*seen)(0), (*seen)(1), (*seen)(2)}), (floats{5, 10, 15}));
        (*seen)(2) = 7;
        launch_scale(*device_view<const float, 1>::from(out), 2, *device_view<float, 1>::from(x));
        EXPECT_EQ(values_of<float>(x), (floats{10, 20, 14})) << "what the host wrote, the kernel reads";
    }
}

__global__ void spin(long long cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

TEST_F(GpuDispatch, TheStreamOfTheViewComesAfterTheWorkOnIt) {
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    auto* const memory = static_cast<float*>(allocate(gpu, 3 * sizeof(float)));
    check(cudaMemset(memory, 0, 3 * sizeof(float)));
    const auto info = tenon::tensor_info::contiguous(memory, {3}, gpu).on_stream(stream);
    {
        const auto x = tenon::tensor::own(info, [](void* p) { release(gpu, p); });
        ASSERT_TRUE(x) << x.error().message();
        const auto view_of_x = device_view<float, 1>::from(*x);
        ASSERT_TRUE(view_of_x);
        EXPECT_EQ(view_of_x->stream(), static_cast<void*>(stream));
        spin<<<1, 1, 0, stream>>>(50'000'000);
        check(cudaMemcpyAsync(memory, numbers.data(), 3 * sizeof(float), cudaMemcpyHostToDevice, stream));
        launch_scale(*device_view<const float, 1>::from(*x), 3, *view_of_x);
        check(cudaStreamSynchronize(stream));
        EXPECT_EQ(values_of<float>(*x), (floats{3, 6, 9}));
    }
    const auto plain = vector_of(gpu, numbers);
    EXPECT_EQ((device_view<const float, 1>::from(plain)->stream()), static_cast<void*>(cudaStreamLegacy));
    check(cudaStreamDestroy(stream));
}

}  // namespace
