// tests/python/native/bound_loops.hpp: element loops, and functions of single numbers, bound three ways.
#pragma once

#include <complex>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <tenon/bind/vectorize.hpp>

namespace loops {

/// float16 and bfloat16, which not every compiler has.
template <std::uint8_t Code>
struct half {
    std::uint16_t bits;
};

}  // namespace loops

template <std::uint8_t Code>
struct tenon::dtype_traits<loops::half<Code>> {
    static constexpr tenon::dtype value{Code, 16};
};

namespace loops {

using tenon::array;

// --- loops ------------------------------------------------------------------------------------------------

inline array<double> added(array<const double> x, array<const double> y) {
    const auto sizes = tenon::py::or_raise(tenon::broadcast_shape(x, y));
    auto out = tenon::empty_like(x, sizes);
    tenon::py::or_raise(
        tenon::for_each(tenon::broadcast, x, y, out, [](double a, double b, double& sum) { sum = a + b; }));
    return out;
}
inline void add_to(array<double> x, array<const double, 2> y) {
    tenon::py::or_raise(tenon::for_each(x, y, [](double& a, double b) { a += b; }));
}
inline std::vector<double> listed(array<const double> x) {
    std::vector<double> out;
    for (const double v : x.elements()) out.push_back(v);
    return out;
}

// --- numbers as arrays ------------------------------------------------------------------------------------

template <class T>
using number = array<const T, tenon::dynamic_rank, tenon::numbers, tenon::convert>;

template <class T>
std::string taken(number<T> x) {
    return std::to_string(x.ndim()) + (x.is_number() ? " number" : " array");
}
template <std::uint8_t Code>
std::int64_t bits_of(number<half<Code>> x) {
    return x.data()->bits;
}
inline constexpr auto float16_bits = &bits_of<tenon::abi::type_code::float_>;
inline constexpr auto bfloat16_bits = &bits_of<tenon::abi::type_code::bfloat>;
inline array<const double, tenon::dynamic_rank, tenon::numbers> given_back(number<double> x) { return x; }
inline auto of_shape(number<double> x, bool has_axes) {
    return has_axes ? tenon::empty_like(x, {3}) : tenon::empty_like(x, tenon::axes());
}
/// What outlives the call it came with.
inline void remember(const number<double>& x) {
    static std::vector<number<double>> kept;
    kept.push_back(x);
    if (kept.size() > 2) kept.erase(kept.begin());
}
inline std::vector<double> sums(const std::vector<number<double>>& xs) {
    std::vector<double> out;
    for (const auto& x : xs) {
        double sum = 0;
        for (const double v : x.elements()) sum += v;
        out.push_back(sum);
    }
    return out;
}

// --- functions of single numbers --------------------------------------------------------------------------

inline double hypot3(double x, const double& y, double z) { return x * x + y * y + z * z; }
inline std::int32_t scaled(std::int32_t x, bool twice) { return twice ? 2 * x : x; }
inline std::complex<double> turned(std::complex<double> z) { return z * std::complex<double>(0, 1); }
inline bool is_even(std::uint8_t x) noexcept { return x % 2 == 0; }
inline float shifted(float x, const std::string& by) { return x + static_cast<float>(by.size()); }
inline double root(double x) {
    if (x < 0) throw std::domain_error("no root of a negative number");
    return x * x;
}
inline constexpr auto halved = [](float x) { return x / 2; };

}  // namespace loops
