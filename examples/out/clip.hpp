// examples/out/clip.hpp: a function that fills an array of the caller's, or else a new one like its input.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include <tenon/bind/results.hpp>

inline auto clip(tenon::array<const float, 2> x, float low, float high,
                 std::optional<tenon::array<float, 2>> out) {
    auto result = tenon::or_empty_like(out, x);  // `out`, which must have the shape of `x`, or new memory
    for (std::int64_t i = 0; i < x.shape(0); ++i)
        for (std::int64_t j = 0; j < x.shape(1); ++j) result(i, j) = std::clamp(x(i, j), low, high);
    return result;  // the very object that was passed as `out`
}
