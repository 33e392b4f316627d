// tests/python/native/bound_hazards.hpp: functions for what can go wrong around a bound function's arguments:
// Python code that runs between two of them, views into what is about to go, a lock that is not held.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <tenon/bind/array.hpp>
#include <tenon/py.hpp>

namespace hazards {

using tenon::array;
using vector = array<const double, 1>;

// --- what a later argument does to an earlier one ---------------------------------------------------------

template <class View>
double total(const View& x) {
    double sum = 0;
    for (const auto v : x) sum += static_cast<double>(v);
    return sum;
}
inline double alone(vector x) { return total(x); }
inline double then_index(vector x, std::int64_t) { return total(x); }
inline double then_float(vector x, double) { return total(x); }
inline double then_array(vector x, vector) { return total(x); }
inline double three(vector, vector y, std::int64_t) { return total(y); }
inline double then_list(vector x, const std::vector<vector>&) { return total(x); }
inline double then_tensor(vector x, const tenon::tensor&) { return total(x); }
inline double index_then(std::int64_t, vector x) { return total(x); }
inline double maybe_then(std::optional<vector> x, std::int64_t) { return x ? total(*x) : -1.0; }
inline double either_then(std::variant<array<const float, 1>, vector> x, std::int64_t) {
    return std::visit([](const auto& a) { return total(a); }, x);
}
inline double converted_then(array<const double, 1, tenon::convert> x, std::int64_t) { return total(x); }
inline double written_then(array<double, 1> x, std::int64_t) {
    for (double& v : x) v += 1.0;
    return total(x);
}
inline double defaulted(vector x, std::int64_t n, double s) { return total(x) * static_cast<double>(n) * s; }

// --- conversions ------------------------------------------------------------------------------------------

inline double as_float64(array<const double, 1, tenon::convert> x) { return x(0); }
inline float as_float32(array<const float, 1, tenon::convert> x) { return x(0); }
inline float narrowed_float32(array<const float, 1, tenon::convert, tenon::narrowing> x) { return x(0); }
inline std::int64_t narrowed_int16(array<const std::int16_t, 1, tenon::convert, tenon::narrowing> x) {
    return x(0);
}
inline float lossy_float32(array<const float, 1, tenon::convert, tenon::lossy> x) { return x(0); }
inline std::int64_t lossy_uint8(array<const std::uint8_t, 1, tenon::convert, tenon::lossy> x) { return x(0); }
inline std::string lossy_either(
    array<const tenon::one_of<float, std::int32_t>, 1, tenon::convert, tenon::lossy> x) {
    return tenon::name(x.dtype());
}
inline std::int64_t as_int32(array<const std::int32_t, 1, tenon::convert> x) { return x(0); }
inline std::int64_t as_uint8(array<const std::uint8_t, 1, tenon::convert> x) { return x(0); }
inline std::tuple<double, double> as_complex(array<const std::complex<double>, 1, tenon::convert> x) {
    return {x(0).real(), x(0).imag()};
}
inline double listed_float64(const std::vector<array<const double, 1, tenon::convert>>& xs) {
    return xs.at(0)(0);
}
inline std::string either_converted(
    std::variant<array<const double, 1, tenon::convert>, array<const std::complex<double>, 1, tenon::convert>>
        x) {
    return x.index() == 0 ? "float" : "complex";
}

// --- without the GIL --------------------------------------------------------------------------------------

/// Lets go of the GIL for as long as it is there.
class released {
public:
    released() noexcept : state_(PyEval_SaveThread()) {}
    ~released() { PyEval_RestoreThread(state_); }
    released(const released&) = delete;
    released& operator=(const released&) = delete;

private:
    PyThreadState* state_;
};

inline auto fresh(vector x) { return tenon::empty_like(x); }
inline auto fresh_released(vector x) {
    const released here;
    return tenon::empty_like(x);
}
inline auto fresh_of_released(vector x) {
    const released here;
    return tenon::empty_like<float>(x, {2, 3});
}
/// One of the functions that need the GIL, called without it: what they say of it is raised.
inline bool asked_released(vector x, const std::string& what) {
    namespace py = tenon::py;
    PyObject* const obj = x.object();
    auto memory = tenon::tensor::own(std::vector<double>(3));
    bool gave = false;
    {
        const released here;
        if (what == "empty_like") gave = py::empty_like(obj).has_value();
        if (what == "empty_like of a shape") gave = py::empty_like<float>(obj, {3}).has_value();
        if (what == "empty_like None")
            gave = py::empty_like(Py_None, {3}, tenon::dtype_of<float>).has_value();
        if (what == "from_python") gave = py::from_python(obj).has_value();
        if (what == "from_python to be copied") gave = py::from_python(obj, {.copy = true}).has_value();
        if (what == "borrow") gave = py::borrow(obj, {.rank = 7}, [](const tenon::tensor_ref&) {});
        if (what == "to_python") gave = py::to_python(std::move(*memory)) != nullptr;
        if (what == "to_python like") gave = py::to_python(std::move(*memory), obj) != nullptr;
        if (what == "to_capsule") gave = py::to_capsule(std::move(*memory)) != nullptr;
        if (what == "raise") gave = py::raise(tenon::refused("data", "said without the GIL")) != nullptr;
        if (what == "or_raise") (void)py::or_raise(tenon::view<const float, 2>::from(x));
    }
    if (!gave && PyErr_Occurred() != nullptr) throw py::python_error();
    return gave;
}

}  // namespace hazards
