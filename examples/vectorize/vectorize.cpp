// examples/vectorize/vectorize.cpp: a formula over single numbers, and a loop over several arrays.
#include <cmath>

#include <nanobind/nanobind.h>
#include <tenon/bind/nanobind.hpp>
#include <tenon/bind/vectorize.hpp>

/// The distance in km between two places on Earth, in degrees. It knows nothing of arrays.
double distance(double lat1, double lon1, double lat2, double lon2) {
    constexpr double degree = 3.14159265358979323846 / 180, radius = 6371;
    const double north = std::sin((lat2 - lat1) * degree / 2), east = std::sin((lon2 - lon1) * degree / 2);
    const double a = north * north + std::cos(lat1 * degree) * std::cos(lat2 * degree) * east * east;
    return 2 * radius * std::asin(std::sqrt(a));
}

/// Moves every element of `x` towards that of `goal`, in place: of one shape, and of any layout.
void approach(tenon::array<double> x, tenon::array<const double> goal, double step) {
    tenon::py::or_raise(tenon::for_each(x, goal, [=](double& at, double to) { at += step * (to - at); }));
}

NB_MODULE(vectorize, module) {
    using namespace nanobind::literals;
    module.def("distance", tenon::vectorize(distance), "lat1"_a, "lon1"_a, "lat2"_a, "lon2"_a);
    module.def("approach", approach, "x"_a, "goal"_a, "step"_a);
}
