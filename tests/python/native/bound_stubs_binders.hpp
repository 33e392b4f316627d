// tests/python/native/bound_stubs_binders.hpp: what stubs are written of: every kind of parameter, result and
// class once, in the words that both binders share. `binder` is the one that is included.
#pragma once

#include <complex>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace stubs {

using tenon::array;

/// Keeps what it was made of.
struct model {
    explicit model(tenon::tensor t) : weights(std::move(t)) {}
    tenon::tensor weights;
};

/// An array for every library.
struct image {
    std::vector<float> pixels = std::vector<float>(6);
    friend tenon::tensor_info describe(image& self) {
        return tenon::tensor_info::contiguous(self.pixels.data(), {2, 3});
    }
};

inline auto doubled(array<const float, 1> x) {
    auto out = tenon::empty_like(x);
    for (std::int64_t i = 0; i < x.size(); ++i) out(i) = 2 * x(i);
    return out;
}

template <class Module>
void bind_functions(Module& m) {
    using binder::arg;
    // A result of its own for each, so that checkers must tell them apart.
    m.def("by_dtype", [](array<const float, 1>) { return 1.5; }, arg("x"));
    m.def("by_dtype", [](array<const double, 1>) { return std::string("float64"); }, arg("x"));
    m.def("by_dtype", [](array<const std::int64_t, 1>) { return std::vector<int>{64}; }, arg("x"));
    m.def("by_rank", [](array<const float, 1>) { return 1; }, arg("x"));
    m.def("by_rank", [](array<const float, 2>) { return std::string("matrix"); }, arg("x"));
    m.def("by_rank", [](array<const void>) { return std::vector<int>{}; }, arg("x"));
    m.def("by_rank", [](const tenon::tensor&) { return true; }, arg("x"));
    m.def("converting", [](array<const float, 1, tenon::convert>) { return 1.5; }, arg("x"));
    m.def("converting", [](array<const double, 1, tenon::convert>) { return std::string(); }, arg("x"));

    m.def("truth", [](array<const tenon::bool8, 1>) { return true; }, arg("x"));
    m.def("whole", [](array<const std::int64_t, 1> x) { return x.size(); }, arg("x"));
    m.def("waves", [](array<const std::complex<float>, 1> x) { return x.size(); }, arg("x"));
    m.def(
        "anything", [](array<const void, tenon::dynamic_rank, tenon::any_device> x) { return x.ndim(); },
        arg("x"));
    m.def(
        "fill",
        [](array<float, 1> x, float value) {
            for (float& v : x) v = value;
        },
        arg("x"), arg("value") = 0);

    m.def(
        "maybe", [](std::optional<array<const float, 1>> x) { return x.has_value(); },
        arg("x") = binder::none());
    m.def(
        "either", [](std::variant<array<const float, 1>, array<const double, 1>> x) { return x.index(); },
        arg("x"));
    m.def("several", [](const std::vector<array<const float, 1>>& xs) { return xs.size(); }, arg("xs"));
    m.def(
        "named", [](const std::map<std::string, array<const float, 1>>& xs) { return xs.size(); }, arg("xs"));
    m.def(
        "two", [](const std::tuple<array<const float, 1>, array<const double, 1>>&) { return 2; }, arg("xs"));

    m.def("doubled", &doubled, arg("x"));
    m.def(
        "doubled_twice", [](array<const float, 1> x) { return std::tuple(doubled(x), doubled(x)); },
        arg("x"));
    m.def("doubled_list", [](array<const float, 1> x) { return std::vector{doubled(x)}; }, arg("x"));
    m.def("numbers", [] { return tenon::tensor::own(std::vector<double>{1, 2}); });
}

inline void bind_all(binder::module_& m) {
    using binder::arg;
    bind_functions(m);
    binder::class_<model>(m, "Model")
        .def(binder::init<tenon::tensor>(), arg("weights"))
        .def(
            "__matmul__", [](model& self, array<const float, 1> x) { return self.weights.size() + x.size(); },
            arg("x"))
        .BIND_PROPERTY(
            "weights", [](model& self) { return self.weights.share(); },
            [](model& self, tenon::tensor t) { self.weights = std::move(t); });
    const binder::class_<image> type = binder::class_<image>(m, "Image").def(binder::init<>());
    if (!tenon::py::make_producer<image>(type.ptr(),
                                         [](PyObject* o) { return binder::cast<image*>(binder::handle(o)); }))
        throw BIND_ERROR();
}

}  // namespace stubs
