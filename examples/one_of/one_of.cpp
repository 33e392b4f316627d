// examples/one_of/one_of.cpp: functions that take several element types, and give back the one that came in.
#include <cmath>
#include <stdexcept>

#include <nanobind/nanobind.h>
#include <tenon/bind/nanobind.hpp>

/// float32 or float64: one parameter, and one line in the signature.
using vector = tenon::array<const tenon::one_of<float, double>, 1>;

/// Both of the same element type: the lambda can be called with no others.
double dot(vector x, vector y) {
    const auto typed = []<class T>(tenon::array<const T, 1> a, tenon::array<const T, 1> b) {
        if (a.size() != b.size()) throw std::invalid_argument("x and y must have the same length");
        double sum = 0;
        for (std::int64_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a(i) * b(i));
        return sum;
    };
    return tenon::visit(typed, x, y);
}

/// What comes back has the element type of `x`.
auto unit(vector x) {
    const double length = std::sqrt(dot(x, x));
    return x.visit([&]<class T>(tenon::array<const T, 1> typed) {
        auto out = tenon::empty_like(typed);
        for (std::int64_t i = 0; i < out.size(); ++i) out(i) = static_cast<T>(typed(i) / length);
        return out;
    });
}

NB_MODULE(one_of, module) {
    using namespace nanobind::literals;
    module.def("dot", &dot, "x"_a, "y"_a);
    module.def("unit", &unit, "x"_a);
}
