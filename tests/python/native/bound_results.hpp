// tests/python/native/bound_results.hpp: functions whose results name their library, take an `out`, or show
// memory of a Python object; and what may be called without the GIL.
#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <tenon/bind/results.hpp>
#include <tenon/py.hpp>

namespace results {

using tenon::array;
using tenon::tensor;

/// 0, 1, 2...
inline std::vector<float> counted(std::int64_t n) {
    std::vector<float> out(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(i);
    return out;
}

// --- results that name their library ----------------------------------------------------------------------

inline tenon::numpy_array<float, 2> numpy_2d(std::int64_t rows, std::int64_t columns) {
    return tensor::own(counted(rows * columns), {rows, columns});
}
inline tenon::numpy_array<float> numpy_any(std::int64_t n) { return counted(n); }
inline tenon::numpy_array<const float, 1> numpy_const(std::int64_t n) { return counted(n); }
inline tenon::numpy_array<float, tenon::shape<tenon::any, 3>> numpy_threes(std::int64_t rows,
                                                                           std::int64_t columns) {
    return tensor::own(counted(rows * columns), {rows, columns});
}
inline tenon::numpy_array<void> numpy_of(tensor t) { return t; }
inline tenon::torch_tensor<void> torch_of(tensor t) { return t; }
inline tenon::memory_view<void> memory_of(tensor t) { return t; }
inline tenon::numpy_array<double, 1> numpy_float64(tensor t) { return t; }
inline tenon::torch_tensor<float, 1> torch_1d(std::int64_t n) { return counted(n); }
inline tenon::jax_array<float, 1> jax_1d(std::int64_t n) {
    auto memory = tenon::allocate(tenon::dtype_of<float>, {n});
    if (memory)
        for (float& x : tenon::view<float, 1>::from(*memory).value()) x = 1;
    return memory;
}
inline tenon::cupy_array<float, 1> cupy_1d(std::int64_t n) { return counted(n); }
inline tenon::tensorflow_tensor<float, 1> tensorflow_1d(std::int64_t n) { return counted(n); }
inline tenon::paddle_tensor<float, 1> paddle_1d(std::int64_t n) { return counted(n); }
inline tenon::memory_view<const float, 1> memory_1d(std::int64_t n) { return counted(n); }
inline tenon::memory_view<float> memory_2d(std::int64_t rows, std::int64_t columns) {
    return tensor::own(counted(rows * columns), {rows, columns});
}
/// A tensor that cannot be.
inline tenon::numpy_array<float, 2> impossible(std::int64_t n) { return tensor::own(counted(n), {n, 2}); }
/// Of a tensor that is somewhere else by now.
inline tenon::numpy_array<double, 2> numpy_moved() {
    tensor gone = tensor::own(counted(3)).value();
    const tensor taken = std::move(gone);
    return gone;
}

inline std::optional<tenon::numpy_array<float, 1>> maybe_numpy(std::int64_t n) {
    if (n == 0) return std::nullopt;
    return counted(n);
}
inline std::vector<tenon::torch_tensor<float, 1>> list_of_torch(std::int64_t n) {
    std::vector<tenon::torch_tensor<float, 1>> out;
    for (std::int64_t i = 0; i < n; ++i) out.emplace_back(counted(i));
    return out;
}
inline std::tuple<tenon::numpy_array<float, 1>, tenon::torch_tensor<float, 1>> two_libraries(std::int64_t n) {
    return {counted(n), counted(n)};
}
inline std::pair<tenon::numpy_array<float, 1>, std::int64_t> numpy_and_number(std::int64_t n) {
    return {counted(n), n};
}
inline std::map<std::string, tenon::numpy_array<float, 1>> dict_of_numpy(std::int64_t n) {
    std::map<std::string, tenon::numpy_array<float, 1>> out;
    out.emplace("first", counted(n));
    return out;
}
/// The same of a list, of which one item is not what is declared.
inline std::vector<tenon::numpy_array<float, 2>> list_of_wrong(std::int64_t n) {
    std::vector<tenon::numpy_array<float, 2>> out;
    out.emplace_back(tensor::own(counted(n), {n, 1}));
    out.emplace_back(tensor::own(counted(n)));
    return out;
}

// --- out= -------------------------------------------------------------------------------------------------

inline auto scale(array<const float> x, std::optional<array<float>> out) {
    auto result = tenon::or_empty_like(out, x);
    const auto from = tenon::py::or_raise(x.span());
    const auto to = tenon::py::or_raise(result.span());
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = 2 * from[i];
    return result;
}
inline auto outer(array<const float, 1> x, std::optional<array<double, 2>> out) {
    auto result = tenon::or_empty_like(out, x, {x.size(), x.size()});
    for (std::int64_t i = 0; i < x.size(); ++i)
        for (std::int64_t j = 0; j < x.size(); ++j) result(i, j) = static_cast<double>(x(i) * x(j));
    return result;
}
inline auto like_any(array<const void> x, std::optional<array<void>> out) {
    return tenon::or_empty_like(out, x);
}

// --- memory of a Python object ----------------------------------------------------------------------------

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

/// Four floats, whoever owns them.
inline tenon::tensor_info four() {
    static float numbers[4] = {1, 2, 3, 4};
    return tenon::tensor_info::contiguous(numbers, {4});
}
/// Runs `fn` attached, released, or on a thread that Python knows nothing of.
template <class Fn>
void run_there(const std::string& where, Fn&& fn) {
    if (where == "attached") return fn();
    const released here;
    if (where == "released") return fn();
    std::thread(fn).join();
}
/// A tensor that keeps `owner`, made here or there.
inline tenon::result<tensor> owned(PyObject* owner, const std::string& where) {
    tenon::result<tensor> made = tenon::error{};
    run_there(where, [&] { made = tenon::py::own(owner, four()); });
    return made;
}
/// The same of a reference that is given away, made here and dropped there.
inline void owned_and_dropped(PyObject* owner, const std::string& made_where,
                              const std::string& dropped_where) {
    auto given = tenon::py::ref::borrow(owner);
    tenon::result<tensor> made = tenon::error{};
    run_there(made_where, [&] { made = tenon::py::own(std::move(given), four()); });
    tensor kept = tenon::py::or_raise(std::move(made));
    run_there(dropped_where, [&] { kept.reset(); });
}
/// One that is never dropped: whatever is left of the process sees to that.
inline void owned_for_ever(PyObject* owner) {
    static tensor kept = tenon::py::or_raise(tenon::py::own(owner, four()));
    (void)kept;
}
/// A description that cannot be: the reference comes back.
inline void owned_in_vain(PyObject* owner) {
    auto made = tenon::py::own(tenon::py::ref::borrow(owner),
                               tenon::tensor_info::contiguous(static_cast<float*>(nullptr), {4}));
    (void)tenon::py::or_raise(std::move(made));
}

inline bool is_array(PyObject* obj) { return tenon::py::is_array(obj); }

// --- without the GIL --------------------------------------------------------------------------------------

inline PyMethodDef no_methods[] = {{nullptr, nullptr, 0, nullptr}};
struct image {
    float pixels[4];
};
inline tenon::tensor_info describe(image& i) { return tenon::tensor_info::contiguous(i.pixels, {4}); }

inline tensor sample() { return tensor::own(counted(3)).value(); }
inline void raise_some_exception() {
    try {
        throw std::out_of_range("caught without the GIL");
    } catch (...) {
        tenon::py::raise_caught();
    }
}

/// One public function, called where there may be no GIL: whether it gave anything.
inline bool call_one(PyObject* obj, const std::string& what) {
    namespace py = tenon::py;
    if (what == "from_python") return py::from_python(obj).has_value();
    if (what == "from_python copy") return py::from_python(obj, {.copy = true}).has_value();
    if (what == "from_python to") return py::from_python(obj, {.to = tenon::device{}}).has_value();
    if (what == "borrow") return py::borrow(obj, {.rank = 7}, [](const tenon::tensor_ref&) {});
    if (what == "is_array") return py::is_array(obj);
    if (what == "empty_like") return py::empty_like(obj).has_value();
    if (what == "empty_like of a shape") return py::empty_like<float>(obj, {3}).has_value();
    if (what == "to_python") return py::to_python(sample()) != nullptr;
    if (what == "to_python result") return py::to_python(tensor::own(counted(3))) != nullptr;
    if (what == "to_python error") return py::to_python(tensor::own(counted(3), {7})) != nullptr;
    if (what == "to_python like") return py::to_python(sample(), obj) != nullptr;
    if (what == "to_python result like") return py::to_python(tensor::own(counted(3)), obj) != nullptr;
    if (what == "to_python described like") return py::to_python(four(), [](void*) {}, obj) != nullptr;
    if (what == "to_capsule") return py::to_capsule(sample()) != nullptr;
    if (what == "to_capsule result") return py::to_capsule(tensor::own(counted(3))) != nullptr;
    if (what == "to_capsule described") return py::to_capsule(four(), [](void*) {}) != nullptr;
    if (what == "to_library") return py::to_library(sample(), "numpy") != nullptr;
    if (what == "to_library error") return py::to_library(tensor::own(counted(3), {7}), "numpy") != nullptr;
    if (what == "to_library unknown") return py::to_library(sample(), "nothing") != nullptr;
    if (what == "make_producer")
        return py::make_producer<image>(obj, [](PyObject*) -> image* { return nullptr; });
    if (what == "make_producer type")
        return py::make_producer<image>(reinterpret_cast<PyObject*>(Py_TYPE(obj)),
                                        [](PyObject*) -> image* { return nullptr; });
    if (what == "make_producer boxed")
        return py::make_producer<image>(reinterpret_cast<PyObject*>(Py_TYPE(obj)));
    if (what == "raise") return py::raise(tenon::refused("data", "said without the GIL")) != nullptr;
    if (what == "raise_caught") raise_some_exception();
    if (what == "warn_of_conversion") tenon::warn_of_conversion({obj, obj, "float32[*]"});
    if (what == "set_conversion_hook")
        return tenon::set_conversion_hook(tenon::set_conversion_hook(nullptr)) != nullptr;
    if (what == "numpy_array") return tenon::numpy_array<float>(counted(3)).to_python() != nullptr;
    if (what == "numpy_array of another rank")
        return tenon::numpy_array<float, 2>(sample()).to_python() != nullptr;
    return false;
}
/// What has become of it there: True or False, or the exception that stands when the GIL is back.
inline bool call_there(PyObject* obj, const std::string& what, const std::string& where) {
    bool gave = false;
    run_there(where, [&] { gave = call_one(obj, what); });
    if (PyErr_Occurred() != nullptr) throw tenon::py::python_error();
    return gave;
}
/// `or_raise`, which throws as well.
inline std::string or_raise_there(const std::string& where) {
    std::string said = "nothing";
    run_there(where, [&] {
        try {
            (void)tenon::py::or_raise(tensor::own(counted(3), {7}));
        } catch (const tenon::py::python_error&) {
            said = "python_error";
        }
    });
    PyErr_Clear();
    return said;
}
/// What it throws comes back from the thread that threw it, as by a `std::future`.
inline double or_raise_elsewhere(const array<const float>& x, const std::string& where) {
    std::exception_ptr thrown;
    run_there(where, [&] {
        try {
            (void)tenon::py::or_raise(tensor::own(counted(3), {7}));
        } catch (...) {
            thrown = std::current_exception();
        }
    });
    if (thrown) std::rethrow_exception(thrown);
    return static_cast<double>(x.size());
}
/// Of the element type that `x` has.
inline auto like_set(const array<const tenon::one_of<float, double>>& x,
                     std::optional<array<tenon::one_of<float, double>>> out) {
    return tenon::or_empty_like(out, x);
}
/// Who catches it goes on, or throws it again; it says what is wrong in C++, too.
inline std::string catch_and(const std::string& what) {
    try {
        (void)tenon::py::or_raise(tensor::own(counted(3), {7}));
    } catch (const std::exception& e) {
        if (what == "throw it") throw;
        PyErr_Clear();
        return e.what();
    }
    return "nothing";
}
/// The exception it stands for has been dropped.
inline double throw_for_nothing(const array<const float>& x) {
    PyErr_Clear();
    if (x.size() != 0) throw tenon::py::python_error();
    return 0;
}
/// A function that takes no array.
inline std::int64_t raise_without_arrays() {
    return tenon::py::or_raise(tensor::own(counted(3), {7})).size();
}

}  // namespace results
