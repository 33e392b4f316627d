// tests/gpu/support.hpp: memory of every kind a GPU can use, as tensors that give it back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <tenon/tenon.hpp>

namespace tenon_test {

inline void check(cudaError_t status) {
    if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

/// Why nothing can run here; empty if something can.
inline std::string no_device() {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess) return cudaGetErrorString(status);
    return count == 0 ? "no CUDA-capable device" : "";
}
#define TENON_NEED_GPU() \
    if (const std::string why = tenon_test::no_device(); !why.empty()) GTEST_SKIP() << "needs a GPU: " << why

inline constexpr tenon::device cpu{};
inline constexpr tenon::device gpu{tenon::abi::device_code::cuda, 0};
inline constexpr tenon::device pinned{tenon::abi::device_code::cuda_host, 0};
inline constexpr tenon::device managed{tenon::abi::device_code::cuda_managed, 0};

/// Room of that many bytes in a kind of memory.
inline void* allocate(tenon::device where, std::size_t bytes) {
    void* memory = nullptr;
    if (where == gpu)
        check(cudaMalloc(&memory, bytes));
    else if (where == pinned)
        check(cudaMallocHost(&memory, bytes));
    else if (where == managed)
        check(cudaMallocManaged(&memory, bytes));
    else
        memory = ::operator new(bytes);
    return memory;
}
inline void release(tenon::device where, void* memory) noexcept {
    if (where == gpu || where == managed)
        (void)cudaFree(memory);
    else if (where == pinned)
        (void)cudaFreeHost(memory);
    else
        ::operator delete(memory);
}

/// A vector with a copy of these elements, where asked. For a type of less than a byte, a byte each.
template <class T>
tenon::tensor vector_of(tenon::device where, const std::vector<T>& values) {
    const std::size_t bytes = values.size() * sizeof(T);
    auto* const memory = static_cast<T*>(allocate(where, bytes));
    if (where == gpu)
        check(cudaMemcpy(memory, values.data(), bytes, cudaMemcpyHostToDevice));
    else
        std::memcpy(static_cast<void*>(memory), static_cast<const void*>(values.data()), bytes);
    auto made = tenon::tensor::own(memory, {values.size()}, [where](T* p) { release(where, p); }, where);
    if (!made) throw std::runtime_error(made.error().message());
    return std::move(*made);
}

/// What it holds once everything that is queued is done.
template <class T>
std::vector<T> values_of(const tenon::tensor& t) {
    std::vector<T> out(static_cast<std::size_t>(t.size()));
    if (t.device() != cpu) check(cudaDeviceSynchronize());
    if (t.device() == gpu)
        check(cudaMemcpy(out.data(), t.data(), out.size() * sizeof(T), cudaMemcpyDeviceToHost));
    else
        std::memcpy(static_cast<void*>(out.data()), t.data(), out.size() * sizeof(T));
    return out;
}

/// How a kernel is launched here: a thread for each element.
inline constexpr unsigned threads = 128;
inline unsigned blocks(std::int64_t count) { return static_cast<unsigned>((count + threads - 1) / threads); }
__device__ inline std::int64_t here() { return blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; }

}  // namespace tenon_test
