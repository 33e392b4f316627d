// tests/gpu/streams_test.cu: streams wait for one another, copies are whole, and memory lives until the work
// that is queued with it is done.

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "../../src/gpu/device_memory.hpp"
#include "support.hpp"

namespace {

using namespace tenon_test;
using tenon::tensor;
using tenon::tensor_info;
using floats = std::vector<float>;
namespace tg = tenon::gpu;

__global__ void spin(long long cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) {
    }
}
__global__ void fill(float* out, float value, std::int64_t count) {
    if (const std::int64_t i = here(); i < count) out[i] = value;
}
constexpr long long some_milliseconds = 6'000'000;
constexpr std::int64_t count = 1 << 12;

struct stream {
    cudaStream_t handle = nullptr;
    stream() { check(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking)); }
    ~stream() { (void)cudaStreamDestroy(handle); }
    stream(const stream&) = delete;
    stream& operator=(const stream&) = delete;
};

class GpuStreams : public testing::Test {
protected:
    void SetUp() override { TENON_NEED_GPU(); }
    void TearDown() override {
        if (no_device().empty()) check(cudaDeviceSynchronize());
    }
};

/// What a reader on `reading` sees of a write that is queued behind a spin on `writing`.
float read_after(const tensor& t, stream& writing, stream& reading, bool ordered) {
    auto* const data = static_cast<float*>(t.data());
    check(cudaMemset(data, 0, count * sizeof(float)));
    check(cudaDeviceSynchronize());
    spin<<<1, 1, 0, writing.handle>>>(some_milliseconds);
    fill<<<blocks(count), threads, 0, writing.handle>>>(data, 7, count);
    if (ordered) {
        const auto waits = tg::order(t.device(), writing.handle, reading.handle);
        EXPECT_TRUE(waits) << waits.error().message();
    }
    float seen = -1;
    check(cudaMemcpyAsync(&seen, data + count - 1, sizeof seen, cudaMemcpyDeviceToHost, reading.handle));
    check(cudaStreamSynchronize(reading.handle));
    check(cudaDeviceSynchronize());
    return seen;
}

TEST_F(GpuStreams, OneWaitsForTheOther) {
    const tensor t = vector_of(gpu, floats(count, 0));
    stream writing;
    stream reading;
    int right = 0;
    for (int i = 0; i < 100; ++i) right += read_after(t, writing, reading, true) == 7;
    EXPECT_EQ(right, 100);
    EXPECT_EQ(read_after(t, writing, reading, false), 0) << "without the wait the old value is seen";
}

TEST_F(GpuStreams, WhatIsNoStreamIsRefused) {
    for (const std::uintptr_t number : {std::uintptr_t{3}, std::uintptr_t{7}, std::uintptr_t{0x1234560}}) {
        const auto waits = tg::order(gpu, nullptr, reinterpret_cast<void*>(number));
        ASSERT_FALSE(waits);
        EXPECT_EQ(waits.error().code, tenon::errc::malformed);
    }
}

TEST_F(GpuStreams, AMomentIsRememberedAfterItsStreamIsGone) {
    const tensor t = vector_of(gpu, floats(count, 0));
    auto* const data = static_cast<float*>(t.data());
    stream reading;
    tg::ready_event ready;
    {
        stream writing;
        spin<<<1, 1, 0, writing.handle>>>(some_milliseconds);
        fill<<<blocks(count), threads, 0, writing.handle>>>(data, 7, count);
        ASSERT_TRUE(tg::remember(gpu, writing.handle, ready));
        ASSERT_TRUE(ready);
    }
    ASSERT_TRUE(tg::order_after(gpu, ready, reading.handle));
    float seen = -1;
    check(cudaMemcpyAsync(&seen, data, sizeof seen, cudaMemcpyDeviceToHost, reading.handle));
    check(cudaStreamSynchronize(reading.handle));
    EXPECT_EQ(seen, 7);
}

TEST_F(GpuStreams, ACapturedStreamWaitsForNothingOutside) {
    stream captured;
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(captured.handle, cudaStreamCaptureModeGlobal));
    EXPECT_TRUE(tg::order(gpu, nullptr, captured.handle));
    tg::ready_event ready;
    EXPECT_TRUE(tg::remember(gpu, captured.handle, ready));
    EXPECT_FALSE(ready);
    EXPECT_EQ(cudaStreamEndCapture(captured.handle, &graph), cudaSuccess) << "and the capture goes on";
    if (graph != nullptr) check(cudaGraphDestroy(graph));
}

// --- copies -----------------------------------------------------------------------------------------------

TEST_F(GpuStreams, ThereAndBack) {
    const tensor host = vector_of(cpu, floats{1, 2, 3, 4, 5, 6});
    const auto there = tg::put(host, gpu, nullptr);
    ASSERT_TRUE(there) << there.error().message();
    EXPECT_EQ(there->device(), gpu);
    EXPECT_TRUE(there->is_copied());
    const auto twin = tg::copy_on_device(*there, nullptr);
    ASSERT_TRUE(twin) << twin.error().message();
    EXPECT_NE(twin->data(), there->data());
    const auto back = tg::fetch(*twin);
    ASSERT_TRUE(back) << back.error().message();
    EXPECT_EQ(values_of<float>(*back), (floats{1, 2, 3, 4, 5, 6}));
}

TEST_F(GpuStreams, MemoryWithGapsIsCopiedInItsOrder) {
    floats numbers(24);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
    tensor whole = vector_of(gpu, numbers);
    struct layout {
        tenon::axes shape, strides;
        std::int64_t first;
    };
    for (const layout& l : {layout{{4, 3}, {6, 2}, 1}, layout{{6, 4}, {1, 6}, 0}, layout{{4, 6}, {-6, 1}, 18},
                            layout{{3, 6}, {0, 1}, 6}, layout{{2, 2, 3}, {12, 1, 4}, 0}}) {
        auto* const first = static_cast<float*>(whole.data()) + l.first;
        const auto part =
            tensor::own(tensor_info::strided(first, l.shape, l.strides, gpu), tenon::keep_alive());
        ASSERT_TRUE(part) << part.error().message();
        const auto by_host = tg::fetch(*part);
        const auto on_device = tg::copy_on_device(*part, nullptr);
        ASSERT_TRUE(by_host && on_device);
        EXPECT_TRUE(on_device->is_c_contiguous());
        EXPECT_EQ(values_of<float>(*on_device), values_of<float>(*by_host));
        EXPECT_EQ(values_of<float>(*by_host)[0], static_cast<float>(l.first));
    }
}

TEST_F(GpuStreams, AnAddressThatIsNoneIsRefused) {
    const auto nowhere = tensor::own(
        tensor_info::contiguous(reinterpret_cast<float*>(std::uintptr_t{0x7F0000000000}), {4}, gpu),
        tenon::keep_alive());
    ASSERT_TRUE(nowhere);
    for (const auto& copied :
         {tg::fetch(*nowhere).has_value(), tg::copy_on_device(*nowhere, nullptr).has_value()})
        EXPECT_FALSE(copied);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << "the device is none the worse for it";
}

TEST_F(GpuStreams, TheDeviceOfAnAddress) {
    for (const tenon::device where : {gpu, managed, pinned}) {
        const tensor t = vector_of(where, floats{1});
        const auto found = tg::device_of_address(t.data());
        ASSERT_TRUE(found);
        EXPECT_EQ(*found, where);
    }
    const float here = 0;
    EXPECT_FALSE(tg::device_of_address(&here));
}

// --- lifetimes --------------------------------------------------------------------------------------------

tensor counted_tensor(std::atomic<int>& releases) {
    void* const memory = allocate(gpu, count * sizeof(float));
    auto made =
        tensor::own(tensor_info::contiguous(static_cast<float*>(memory), {count}, gpu), [&releases](void* p) {
            ++releases;
            (void)cudaFree(p);
        });
    return std::move(*made);
}
bool comes_to(const std::atomic<int>& releases, int wanted) {
    for (int i = 0; i < 500 && releases != wanted; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return releases == wanted;
}

TEST_F(GpuStreams, ATensorIsKeptUntilItsWorkIsDone) {
    std::atomic<int> releases = 0;
    stream working;
    for (int i = 0; i < 10; ++i) {
        tensor t = counted_tensor(releases);
        const int before = releases;
        spin<<<1, 1, 0, working.handle>>>(10 * some_milliseconds);
        fill<<<blocks(count), threads, 0, working.handle>>>(static_cast<float*>(t.data()), 1, count);
        ASSERT_TRUE(tg::keep_until_done(std::move(t), working.handle));
        EXPECT_EQ(releases, before) << "its work is behind a spin";
        check(cudaStreamSynchronize(working.handle));
        ASSERT_TRUE(comes_to(releases, before + 1));
    }
}

TEST_F(GpuStreams, ATensorWithoutWorkGoesToo) {
    std::atomic<int> releases = 0;
    check(cudaDeviceSynchronize());
    ASSERT_TRUE(tg::keep_until_done(counted_tensor(releases), nullptr));
    EXPECT_TRUE(comes_to(releases, 1));  // at once, unless a checker delays the event
}

TEST_F(GpuStreams, ACapturedStreamKeepsNothing) {
    std::atomic<int> releases = 0;
    stream captured;
    tensor t = counted_tensor(releases);
    check(cudaStreamBeginCapture(captured.handle, cudaStreamCaptureModeGlobal));
    EXPECT_FALSE(tg::keep_until_done(std::move(t), captured.handle));
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(captured.handle, &graph), cudaSuccess);
    if (graph != nullptr) check(cudaGraphDestroy(graph));
    EXPECT_EQ(releases, 0);
    EXPECT_EQ(t.size(), count) << "it stays with the caller";
}

TEST_F(GpuStreams, AConsumerOnAnotherStreamLetsGoLate) {
    std::atomic<int> releases = 0;
    stream reading;
    tensor t = counted_tensor(releases);
    tenon::keep_alive owner = tg::released_late(std::move(t.owner()), gpu, nullptr, reading.handle);
    spin<<<1, 1, 0, reading.handle>>>(10 * some_milliseconds);
    owner.reset();
    EXPECT_EQ(releases, 0);
    check(cudaStreamSynchronize(reading.handle));
    EXPECT_TRUE(comes_to(releases, 1));
    tensor other = counted_tensor(releases);
    tg::released_late(std::move(other.owner()), gpu, nullptr, nullptr).reset();
    EXPECT_EQ(releases, 2) << "on the same stream nothing has to be waited for";
}

}  // namespace
