// examples/image_filter/image_filter.cpp: finds the edges in an image, which is read in place whatever its
// strides.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include <pybind11/pybind11.h>
#include <tenon/bind/pybind11.hpp>

/// How steep the brightness is at each pixel, by Sobel's filter. The image goes on beyond its border as it is
/// there.
static auto sobel(tenon::array<const float, 2> image) {
    auto edges = tenon::empty_like(image);
    const std::int64_t height = image.shape(0), width = image.shape(1);
    for (std::int64_t y = 0; y < height; ++y) {
        const auto above = image[std::max<std::int64_t>(y - 1, 0)], here = image[y];
        const auto below = image[std::min(y + 1, height - 1)];
        for (std::int64_t x = 0; x < width; ++x) {
            const std::int64_t left = std::max<std::int64_t>(x - 1, 0), right = std::min(x + 1, width - 1);
            const auto column = [&](std::int64_t i) { return above(i) + 2 * here(i) + below(i); };
            const auto row = [&](auto line) { return line(left) + 2 * line(x) + line(right); };
            edges(y, x) = std::hypot(column(right) - column(left), row(below) - row(above));
        }
    }
    return edges;
}

PYBIND11_MODULE(image_filter, module) {
    module.def("sobel", &sobel, pybind11::arg("image"),
               "How steep the brightness of an image is at each pixel.");
}
