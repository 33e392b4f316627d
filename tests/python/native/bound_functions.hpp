// tests/python/native/bound_functions.hpp: the functions that are bound three ways, once, as plain C++.
#pragma once

#include <chrono>
#include <complex>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <tenon/bind/array.hpp>
#include <tenon/bind/results.hpp>
#include <tenon/py.hpp>
#include <tenon/tensor/for_each.hpp>

#include "../../../src/gpu/cuda_driver.hpp"

namespace bound {

using tenon::array;
using ints = std::vector<std::int64_t>;

// --- one array --------------------------------------------------------------------------------------------

inline double total(array<const double, 1> x) {
    double sum = 0;
    for (const double v : x) sum += v;
    return sum;
}
inline double total_2d(array<const float, 2> x) {
    double sum = 0;
    for (const auto row : x)
        for (const float v : row) sum += v;
    return sum;
}
inline std::int64_t threes(array<const float, tenon::shape<tenon::any, 3>> x) { return x.shape(0); }
inline float exactly(array<const float, tenon::shape<2, 3>> x) { return x(1, 2); }
inline double scalar(array<const double, 0> x) { return x(); }
inline float last_c(array<const float, 2, tenon::c_contiguous> x) { return x.span().back(); }
inline float last_f(array<const float, 2, tenon::f_contiguous> x) { return x.data()[x.size() - 1]; }
inline float last_in_memory(array<const float, 2, tenon::any_contiguous> x) { return x.flat().back(); }
inline std::int64_t length_aligned(array<const float, 1, tenon::aligned<64>> x) { return x.size(); }
inline void fill(array<float, 1> x, float value) {
    for (float& v : x) v = value;
}
inline void fill_2d(array<float, 2> x, float value) {
    for (auto row : x)
        for (float& v : row) v = value;
}
/// By the element type the array turns out to have.
inline double total_any(array<const void> x) {
    const auto sum =
        tenon::dispatch_dtype<float, double, std::int32_t>(x, [&]<class T>(std::type_identity<T>) -> double {
            const auto typed = tenon::view<const T>::from(x);
            if (!typed) throw std::runtime_error(typed.error().message());
            double out = 0;
            const std::span<const T> all = typed->span().value();
            for (const T& v : all) out += static_cast<double>(v);
            return out;
        });
    if (!sum) throw std::invalid_argument(sum.error().message());
    return *sum;
}

/// Of an element type: what comes in is of it, and the function can be called.
template <class T>
std::int64_t length(array<const T, 1> x) {
    return x.size();
}
inline std::int64_t count_true(array<const tenon::bool8, 1> x) {
    std::int64_t count = 0;
    for (const tenon::bool8 v : x) count += v ? 1 : 0;
    return count;
}

// --- places -----------------------------------------------------------------------------------------------

/// The element type's name, shape, strides, device, address and stream.
template <class Array>
std::tuple<std::string, ints, ints, std::string, std::uint64_t, std::uint64_t> seen(const Array& x) {
    return {tenon::name(x.dtype()),
            ints(x.shape().begin(), x.shape().end()),
            ints(x.strides().begin(), x.strides().end()),
            tenon::name(x.device()),
            reinterpret_cast<std::uintptr_t>(x.data()),
            reinterpret_cast<std::uintptr_t>(x.stream())};
}
inline auto on_cpu(array<const float, 1, tenon::cpu> x) { return seen(x); }
inline auto on_cuda(array<const float, 1, tenon::cuda> x) { return seen(x); }
inline auto fresh_on_cuda(array<const float, 1, tenon::cuda> x) { return tenon::empty_like(x); }
/// Work on the device, queued on the stream of what is written to: without a compiler for kernels, a copy.
inline void copy_on_cuda(array<const float, 1, tenon::cuda> x, array<float, 1, tenon::cuda> out) {
    const auto driver = tenon::gpu::driver::needed_for(x.device(), "x");
    if (!driver) throw std::runtime_error(driver.error().message());
    const int fault = (*driver)->copy_on_device(reinterpret_cast<std::uintptr_t>(out.data()),
                                                reinterpret_cast<std::uintptr_t>(x.data()),
                                                static_cast<std::size_t>(x.nbytes()), out.stream());
    if (fault != 0) throw std::runtime_error("the driver reports error " + std::to_string(fault));
}
inline auto copied_on_cuda(array<const float, 1, tenon::cuda> x) {
    auto out = tenon::empty_like(x);
    copy_on_cuda(x, out);
    return out;
}
inline auto on_rocm(array<float, 1, tenon::rocm> x) { return seen(x); }
inline auto on_trn(array<const float, 1, tenon::trn> x) { return seen(x); }
inline auto on_ascend(array<const float, 1, tenon::ascend> x) { return seen(x); }
inline auto on_metal(array<const float, 1, tenon::metal> x) {
    const auto [dtype, shape, strides, device, address, stream] = seen(x);
    return std::tuple(dtype, device, x.byte_offset());
}
/// Memory of a device that plain code can read.
template <class Place>
double total_on(array<const float, 2, Place> x) {
    return total_2d(x);
}
inline auto anywhere(array<const void, tenon::dynamic_rank, tenon::any_device> x) { return seen(x); }

// --- several, or none -------------------------------------------------------------------------------------

inline std::int64_t maybe(std::optional<array<const float, 1>> x) { return x ? x->size() : -1; }
/// Every kind of parameter that a capsule may stand for, and one that may be wrong.
inline std::int64_t sizes_times(array<const float, 1> x, std::optional<array<const float, 1>> maybe_y,
                                std::variant<array<const float, 1>, array<const double, 1>> z,
                                const tenon::tensor& kept, std::int64_t n) {
    const std::int64_t z_size = std::visit([](const auto& a) { return a.size(); }, z);
    return n * (x.size() + (maybe_y ? maybe_y->size() : 0) + z_size + kept.size());
}
inline std::size_t either(std::variant<array<const float, 1>, array<const double, 1>> x) { return x.index(); }
inline void add(array<const double, 1> x, array<const double, 1> y, array<double, 1> out) {
    for (std::int64_t i = 0; i < out.size(); ++i) out(i) = x(i) + y(i);
}
inline double total_of(const std::vector<array<const double, 1>>& xs) {
    double sum = 0;
    for (const auto& x : xs) sum += total(x);
    return sum;
}
inline std::map<std::string, double> totals(const std::map<std::string, array<const double, 1>>& xs) {
    std::map<std::string, double> out;
    for (const auto& [name, x] : xs) out.emplace(name, total(x));
    return out;
}
inline double mixed(const std::tuple<array<const float, 1>, array<const double, 1>>& xs) {
    return static_cast<double>(std::get<0>(xs)(0)) + std::get<1>(xs)(0);
}

/// What `total_of_when_told` waits for, so that a test can do as it likes in between.
class gate {
public:
    void wait() {
        std::unique_lock lock(mutex_);
        waiting_ = true;
        changed_.wait_for(lock, std::chrono::seconds(600), [&] { return open_; });
        waiting_ = open_ = false;
    }
    [[nodiscard]] bool is_waiting() {
        const std::scoped_lock lock(mutex_);
        return waiting_;
    }
    void open() {
        const std::scoped_lock lock(mutex_);
        open_ = true;
        changed_.notify_all();
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool waiting_ = false;
    bool open_ = false;
};
inline gate the_gate;

/// Sums up without the GIL, once `tell` has been called.
inline double total_of_when_told(const std::vector<array<const double, 1>>& xs) {
    PyThreadState* const state = PyEval_SaveThread();
    the_gate.wait();
    const double sum = total_of(xs);
    PyEval_RestoreThread(state);
    return sum;
}
inline bool is_waiting() { return the_gate.is_waiting(); }
inline void tell() { the_gate.open(); }

// --- one of several element types -------------------------------------------------------------------------

using tenon::one_of;
using floats = one_of<float, double>;

// An array becomes one that promises less, and nothing else.
template <class From, class To>
inline constexpr bool becomes = std::is_convertible_v<const From&, To>;
static_assert(becomes<array<float, 1>, array<const floats, 1>>);
static_assert(becomes<array<const floats, 1>, array<const one_of<double, int, float>, 1>>);
static_assert(
    becomes<array<const floats, 1, tenon::c_contiguous>, array<const void, 1, tenon::any_contiguous>>);
static_assert(becomes<array<float, 2, tenon::f_contiguous>, array<float, 2, tenon::any_contiguous>>);
static_assert(!becomes<array<int, 1>, array<const floats, 1>>);
static_assert(!becomes<array<const void, 1>, array<const floats, 1>>);
static_assert(!becomes<array<const floats, 1>, array<const float, 1>>);
static_assert(!becomes<array<const floats, 1>, array<const one_of<float, int>, 1>>);
static_assert(!becomes<array<const floats, 1>, array<floats, 1>>);
static_assert(!becomes<array<float, 2, tenon::any_contiguous>, array<float, 2, tenon::c_contiguous>>);
static_assert(!becomes<array<float, 2, tenon::cuda_host>, array<float, 2, tenon::cuda_managed>>);
static_assert(becomes<array<float, 2, tenon::cuda_host>, array<float, 2>>);

inline double total_either(array<const floats, 1> x) {
    return x.visit([](const auto& typed) {
        double sum = 0;
        for (const auto v : typed) sum += static_cast<double>(v);
        return sum;
    });
}
/// What comes back has the element type of what came in.
inline auto twice(array<const one_of<float, double, std::int32_t>, 1> x) {
    return x.visit([](const auto& typed) {
        auto out = tenon::empty_like(typed);
        for (std::int64_t i = 0; i < out.size(); ++i) out(i) = typed(i) + typed(i);
        return out;
    });
}
inline array<floats, 1> halves(array<const one_of<float, double, std::int32_t>, 1> x) {
    return x.visit([](const auto& typed) -> array<floats, 1> {
        using T = std::remove_cvref_t<decltype(typed(0))>;
        auto out = tenon::empty_like<std::conditional_t<std::is_same_v<T, float>, float, double>>(typed);
        for (std::int64_t i = 0; i < out.size(); ++i)
            out(i) = static_cast<std::remove_reference_t<decltype(out(0))>>(typed(i)) / 2;
        return out;
    });
}
inline auto empty_either(array<const floats, 1> x) { return tenon::empty_like(x); }
inline void fill_either(array<one_of<float, std::int32_t>, 1> x, double value) {
    x.visit([&](auto typed) {
        for (auto& v : typed) v = static_cast<std::remove_reference_t<decltype(v)>>(value);
    });
}
/// Of the same element type.
inline double dot_either(array<const floats, 1> x, array<const floats, 1> y) {
    const auto dot = []<class T>(array<const T, 1> a, array<const T, 1> b) {
        double sum = 0;
        for (std::int64_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a(i) * b(i));
        return sum;
    };
    return tenon::visit(dot, x, y);
}
/// Of any two, and one that is known.
inline void add_either(array<const floats, 1> x, array<const one_of<float, std::int32_t>, 1> y,
                       array<double, 1> out) {
    const auto add = [](const auto& a, const auto& b, const auto& sum) {
        for (std::int64_t i = 0; i < sum.size(); ++i)
            sum(i) = static_cast<double>(a(i)) + static_cast<double>(b(i));
    };
    tenon::visit(add, x, y, out);
}
/// It takes less than the parameter states.
inline std::int64_t length_of_float(array<const one_of<float, double, std::int32_t>, 1> x) {
    return x.visit([]<std::floating_point T>(array<const T, 1> typed) { return typed.size(); });
}
inline std::string converted_either(array<const floats, 1, tenon::convert> x) {
    return tenon::name(x.dtype());
}
inline std::string narrowed_either(
    array<const one_of<float, std::int16_t>, 1, tenon::convert, tenon::narrowing> x) {
    return tenon::name(x.dtype());
}
inline ints strides_either(array<const floats, 2, tenon::c_contiguous, tenon::convert> x) {
    return {x.stride(0), x.stride(1), x.dtype().bits};
}
inline std::size_t either_or_int(std::variant<array<const floats, 1>, array<const std::int32_t, 1>> x) {
    return x.index();
}
inline double total_of_either(const std::vector<array<const floats, 1>>& xs) {
    double sum = 0;
    for (const auto& x : xs) sum += total_either(x);
    return sum;
}
inline std::string device_of_either(array<const floats, 1, tenon::cuda> x) {
    return x.visit([](const auto& typed) {
        return tenon::name(tenon::dtype_of<typename std::remove_cvref_t<decltype(typed)>::element_type>) +
               " on " + typed.device_name();
    });
}

// --- extents with names -----------------------------------------------------------------------------------

using tenon::shape;

inline double dot(array<const double, shape<"n">> x, array<const double, shape<"n">> y) {
    double sum = 0;
    for (std::int64_t i = 0; i < x.size(); ++i) sum += x(i) * y(i);
    return sum;
}
inline double dot_converted(array<const double, shape<"n">, tenon::convert> x,
                            array<const double, shape<"n">, tenon::convert> y) {
    return dot(x, y);
}
inline auto matmul(array<const double, shape<"n", "k">> a, array<const double, shape<"k", "m">> b,
                   std::optional<array<double, shape<"n", "m">>> out) {
    auto c = tenon::or_empty_like(out, a, {a.shape(0), b.shape(1)});
    for (std::int64_t i = 0; i < a.shape(0); ++i)
        for (std::int64_t j = 0; j < b.shape(1); ++j) {
            c(i, j) = 0;
            for (std::int64_t k = 0; k < b.shape(0); ++k) c(i, j) += a(i, k) * b(k, j);
        }
    return c;
}
inline double trace(array<const double, shape<"n", "n">> x) {
    double sum = 0;
    for (std::int64_t i = 0; i < x.shape(0); ++i) sum += x(i, i);
    return sum;
}
/// Alternatives with a name, and a number among the names.
inline std::int64_t rows_of(array<const double, shape<"n", 3>> x,
                            std::variant<array<const float, shape<"n">>, array<const double, shape<"n">>> y) {
    return x.shape(0) + static_cast<std::int64_t>(y.index());
}

// --- errors about one of the arguments --------------------------------------------------------------------

/// By the element type that the second turns out to have.
inline double total_of_second(array<const void> x, array<const void> y) {
    const auto sum = [&]<class T>(std::type_identity<T>) {
        double out = static_cast<double>(x.size());
        tenon::py::or_raise(tenon::for_each(tenon::py::or_raise(y.as<const T>()),
                                            [&](T value) { out += static_cast<double>(value); }));
        return out;
    };
    return tenon::py::or_raise(tenon::dispatch_dtype<float, double>(y, sum));
}
/// By a view of the second, which may not fit.
inline double first_of_second(array<const void> x, array<const void> y) {
    const auto typed = tenon::py::or_raise(tenon::view<const double, 1>::from(y));
    return typed(0) + static_cast<double>(x.size());
}
/// Of neither: what is wrong is not about an argument.
inline double first_of_none(array<const void>, array<const void>) {
    const auto own = tenon::py::or_raise(tenon::tensor::own(std::vector<float>(3)));
    return tenon::py::or_raise(tenon::view<const double, 1>::from(own))(0);
}

// --- conversions ------------------------------------------------------------------------------------------

inline float first_converted(array<const float, 1, tenon::convert, tenon::narrowing> x) { return x(0); }
inline ints strides_c(array<const float, 2, tenon::c_contiguous, tenon::convert, tenon::narrowing> x) {
    return {x.stride(0), x.stride(1)};
}
inline ints strides_f(array<const float, 2, tenon::f_contiguous, tenon::convert, tenon::narrowing> x) {
    return {x.stride(0), x.stride(1)};
}
inline ints strides_any(array<const float, 2, tenon::any_contiguous, tenon::convert, tenon::narrowing> x) {
    return {x.stride(0), x.stride(1)};
}
inline ints strides_untyped(array<const void, 2, tenon::c_contiguous, tenon::convert> x) {
    return {x.stride(0), x.stride(1), x.dtype().bits};
}
inline ints strides_untyped_f(array<const void, 2, tenon::f_contiguous, tenon::convert> x) {
    return {x.stride(0), x.stride(1), x.dtype().bits};
}
inline double total_of_converted(const std::vector<array<const double, 1, tenon::convert>>& xs) {
    double sum = 0;
    for (const auto& x : xs) sum += x(0);
    return sum;
}

inline std::vector<std::string> reported;

/// What is done with the conversions from now on: "note", "raise", "warn" or nothing.
inline void report_conversions(const std::string& how) {
    static constexpr auto note = [](const tenon::conversion& c) {
        reported.push_back(std::string(Py_TYPE(c.from)->tp_name) + " -> " + Py_TYPE(c.to)->tp_name + ", " +
                           c.expected + (c.from == c.to ? ", the same" : ""));
    };
    static constexpr auto refuse = [](const tenon::conversion&) {
        PyErr_SetString(PyExc_PermissionError, "no copies today");
    };
    tenon::set_conversion_hook(how == "note"    ? +note
                               : how == "raise" ? +refuse
                               : how == "warn"  ? &tenon::warn_of_conversion
                                                : nullptr);
}
inline std::vector<std::string> reported_conversions() { return std::exchange(reported, {}); }

// --- results ----------------------------------------------------------------------------------------------

inline auto scale(array<const float, 1> x, float s) {
    auto out = tenon::empty_like(x);
    for (std::int64_t i = 0; i < x.size(); ++i) out(i) = s * x(i);
    return out;
}
inline auto widened(array<const float, 1> x) {
    auto out = tenon::empty_like<double>(x);
    for (std::int64_t i = 0; i < x.size(); ++i) out(i) = static_cast<double>(x(i));
    return out;
}
inline auto counted(array<const float, 1> x, std::int64_t rows, std::int64_t columns) {
    auto out = tenon::empty_like<std::int32_t>(x, {rows, columns});
    for (std::int64_t i = 0; i < out.size(); ++i)
        out.span()[static_cast<std::size_t>(i)] = static_cast<int>(i);
    return out;
}
inline auto zeros_like(array<const void> x) {
    auto out = tenon::empty_like(x);
    for (std::int64_t i = 0; i < out.nbytes(); ++i) static_cast<char*>(out.data())[i] = 0;
    return out;
}
inline array<const float, 1> same(array<const float, 1> x) { return x; }
inline auto pair_of(array<const float, 1> x) { return std::make_tuple(scale(x, 2.0F), x); }
inline auto both(array<const float, 1> x) {
    auto made = scale(x, 2.0F);
    return std::vector{made, made};  // share their memory
}
inline auto named(array<const float, 1> x) {
    std::map<std::string, decltype(scale(x, 1.0F))> out;
    out.emplace("double", scale(x, 2.0F));
    return out;
}
inline tenon::tensor keep(tenon::tensor t) { return t; }
inline std::string kept_dtype(const tenon::tensor& t) { return tenon::name(t.dtype()); }
/// The numbers from 0 on, in the shape of one axis; an error if there are not so many.
inline tenon::result<tenon::tensor> numbers(std::int64_t count, std::int64_t said) {
    std::vector<double> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
    return tenon::tensor::own(std::move(values), {said});
}

// --- failures ---------------------------------------------------------------------------------------------

inline double fail(array<const double, 1> x, const std::string& kind) {
    if (kind == "invalid_argument") throw std::invalid_argument("not a good argument");
    if (kind == "out_of_range") throw std::out_of_range("not in there");
    if (kind == "runtime_error") throw std::runtime_error("went wrong");
    if (kind == "bad_alloc") throw std::bad_alloc();
    if (kind == "python_error") {
        PyErr_SetString(PyExc_LookupError, "said by Python");
        throw tenon::py::python_error();
    }
    return x(0);
}

}  // namespace bound
