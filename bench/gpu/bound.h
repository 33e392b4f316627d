/* bench/gpu/bound.h: what every binder binds with Tenon: take a vector, make one like it, saxpy. */

#ifndef TENON_BENCH_GPU_BOUND_H
#define TENON_BENCH_GPU_BOUND_H

#include <cstdint>
#include <stdexcept>

#include <tenon/bind/array.hpp>

#include "device.h"
#include "stream_sink.h"

using cuda_vector = tenon::array<const float, 1, tenon::cuda>;
using dense_cuda_vector = tenon::array<const float, 1, tenon::cuda, tenon::c_contiguous>;

inline void take_vector(cuda_vector x) {
    sink_on(x.data(), x.ndim(), x.shape(0), x.stride(0), x.dtype().code + x.dtype().bits + x.device().type,
            x.stream());
}

inline auto like_vector(cuda_vector x) { return tenon::empty_like(x); }

inline auto saxpy(float a, dense_cuda_vector x, dense_cuda_vector y) {
    if (x.size() != y.size()) throw std::invalid_argument("x and y differ in length");
    auto out = tenon::empty_like(x);
    if (const int code = launch_saxpy(a, x.data(), y.data(), out.data(), x.size(), x.stream()))
        throw std::runtime_error(describe_error(code));
    return out;
}

inline std::uint64_t last_address() { return static_cast<std::uint64_t>(sink_data); }
inline std::uint64_t last_stream() { return static_cast<std::uint64_t>(sink_stream); }

#endif
