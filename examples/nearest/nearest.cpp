// examples/nearest/nearest.cpp: a search for the nearest points, for the arrays of any library.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <tenon/bind/nanobind.hpp>

using points = tenon::array<const float, tenon::shape<tenon::any, 3>, tenon::c_contiguous>;

static float distance(const float* a, const float* b) {
    return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

/// For each query its `k` nearest neighbours, nearest first: their indices, and how far away they are.
static auto nearest(points among, points queries, std::int64_t k) {
    if (k < 1 || k > among.shape(0))
        throw std::invalid_argument("nearest(): k must be from 1 to the number of points");
    auto indices = tenon::empty_like<std::int64_t>(queries, {queries.shape(0), k});
    auto distances = tenon::empty_like<float>(queries, {queries.shape(0), k});
    std::vector<std::pair<float, std::int64_t>> found;
    for (std::int64_t q = 0; q < queries.shape(0); ++q) {
        found.clear();
        for (std::int64_t p = 0; p < among.shape(0); ++p)
            found.emplace_back(distance(among.data() + 3 * p, queries.data() + 3 * q), p);
        std::partial_sort(found.begin(), found.begin() + k, found.end());
        for (std::int64_t i = 0; i < k; ++i) std::tie(distances(q, i), indices(q, i)) = found.begin()[i];
    }
    return std::tuple(indices, distances);
}

NB_MODULE(nearest, module) {
    using namespace nanobind::literals;
    module.def("nearest", &nearest, "points"_a, "queries"_a, "k"_a = 1,
               "Indices and distances of the k nearest points.");
}
