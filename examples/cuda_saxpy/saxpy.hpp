// examples/cuda_saxpy/saxpy.hpp: a * x + y for any library's arrays, on the CPU or on CUDA, written once.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include <tenon/bind/array.hpp>
#include <tenon/gpu/stream.hpp>

#include "kernel.hpp"

using input = tenon::array<const float, 1, tenon::any_device>;
using output = tenon::array<float, 1, tenon::any_device>;

/// The device that is CUDA's: pinned and managed memory goes with it.
inline tenon::device cuda_among(std::initializer_list<tenon::device> all) {
    for (const tenon::device where : all)
        if (where.is_cuda()) return where;
    throw std::invalid_argument("saxpy(): there is no kernel for " + name(*all.begin()));
}

/// out = a * x + y. `y` may be an array of either kind: to make it an `input` would be to keep it.
inline void run_saxpy(float a, const input& x, const auto& y, const output& out) {
    if (x.size() != y.size()) {
        throw std::invalid_argument("saxpy(): x has " + std::to_string(x.size()) + " elements and y has " +
                                    std::to_string(y.size()) + "; pass two of the same length");
    }
    using tenon::device_view, tenon::view;
    const auto on_host = [a](view<const float, 1> x, view<const float, 1> y, view<float, 1> out) {
        for (std::int64_t i = 0; i < out.size(); ++i) out(i) = a * x(i) + y(i);
    };
    const auto on_device = [a](device_view<const float, 1> x, device_view<const float, 1> y,
                               device_view<float, 1> out) {
        const tenon::device where = cuda_among({x.device(), y.device(), out.device()});
        // Arrays of two libraries may be on two streams: the kernel comes after the work on both of them,
        // and what either does next comes after the kernel.
        for (void* stream : {x.stream(), y.stream()})
            tenon::py::or_raise(tenon::gpu::order(where, stream, out.stream()));
        launch_saxpy(a, {x.data(), x.stride(0)}, {y.data(), y.stride(0)}, {out.data(), out.stride(0)},
                     out.size(), where.id, out.stream());
        for (void* stream : {x.stream(), y.stream()})
            tenon::py::or_raise(tenon::gpu::order(where, out.stream(), stream));
    };
    tenon::py::or_raise(tenon::dispatch(tenon::together(x, y, out), on_host, on_device));
}

/// A new array of x's library, where x is.
inline auto saxpy(float a, input x, input y) {
    auto out = tenon::empty_like(x);
    run_saxpy(a, x, y, out);
    return out;
}

/// y = a * x + y.
inline void saxpy_into(float a, input x, output y) { run_saxpy(a, x, y, y); }
