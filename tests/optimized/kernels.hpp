// tests/optimized/kernels.hpp: loops that every binder binds, each with a packed instruction of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <tenon/bind/array.hpp>

template <class T>
using line = tenon::array<T, 1, tenon::c_contiguous>;

// Lambdas, so that binders can inline them: what they are inlined into must not be taken for rarely run.

/// mulps: a number and two arrays.
inline constexpr auto add_scaled = [](float a, line<const float> x, line<float> y) {
    const float* const from = x.data();
    float* const to = y.data();
    for (std::int64_t i = 0; i < x.size(); ++i) to[i] += a * from[i];
};

/// divpd: one array.
inline constexpr auto invert = [](line<double> x) {
    for (double& value : std::span(x.data(), static_cast<std::size_t>(x.size()))) value = 1.0 / value;
};

/// subps: an array that may be missing.
inline constexpr auto subtract = [](line<float> y, std::optional<line<const float>> x) {
    if (!x) return;
    const float* const from = x->data();
    float* const to = y.data();
    for (std::int64_t i = 0; i < y.size(); ++i) to[i] -= from[i];
};

/// mulpd: `for_each`, over arrays of any layout.
inline constexpr auto multiply = [](tenon::array<const double> x, tenon::array<double, 2> y) {
    tenon::py::or_raise(tenon::for_each(x, y, [](double a, double& b) { b *= a; }));
};
