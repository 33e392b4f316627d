// tests/python/native/bound_overloads.hpp: overloads, methods, constructors and operators that take arrays,
// in the words that both binders share. `binder` is the namespace of the one that is included.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bound_functions.hpp"

namespace bound {

using tenon::array;

/// Holds a tensor, and is made of one, of a number, or of the first row of an array.
struct model {
    explicit model(tenon::tensor t) : weights(std::move(t)) {}
    explicit model(std::int64_t n)
        : weights(tenon::tensor::own(std::vector<double>(static_cast<std::size_t>(n), 1.0)).value()) {}
    model(array<const float, 2> rows, std::int64_t more) : model(rows.shape(1) + more) {}

    [[nodiscard]] std::int64_t width(array<const float, 1> x) const { return weights.size() + x.size(); }
    void forget(array<float, 1> x) {
        weights = tenon::tensor::own(std::vector<double>()).value();
        fill(x, 0.0F);
    }

    tenon::tensor weights;
};

template <class Module>
void bind_overloads(Module& m) {
    using binder::arg;

    m.def("by_dtype", [](array<const float, 1>) { return "float32"; }, arg("x"));
    m.def("by_dtype", [](array<const double, 1>) { return "float64"; }, arg("x"));

    m.def("by_rank", [](array<const float, 1>) { return "vector"; }, arg("x"));
    m.def("by_rank", [](array<const float, 2>) { return "matrix"; }, arg("x"));

    m.def("by_relation", [](array<const float, tenon::shape<"n", "n">>) { return "square"; }, arg("x"));
    m.def("by_relation", [](array<const float, 2>) { return "matrix"; }, arg("x"));
    m.def(
        "by_lengths",
        [](array<const float, tenon::shape<"n">>, array<const float, tenon::shape<"n">>) { return "equal"; },
        arg("x"), arg("y"));
    m.def(
        "by_lengths",
        [](array<const float, tenon::shape<"n">>, array<const float, tenon::shape<"m">>) { return "others"; },
        arg("x"), arg("y"));
    m.def(
        "by_lengths",
        [](array<const float, tenon::shape<"n", "m">>, array<const float, tenon::shape<"m">>) {
            return "rows";
        },
        arg("x"), arg("y"));

    m.def("by_place", [](array<const float, 1, tenon::cuda>) { return "cuda"; }, arg("x"));
    m.def("by_place", [](array<const float, 1>) { return "host"; }, arg("x"));

    m.def("array_or_number", [](array<const double, 1>) { return "array"; }, arg("x"));
    m.def("array_or_number", [](double) { return "number"; }, arg("x"));
    m.def("number_or_array", [](double) { return "number"; }, arg("x"));
    m.def("number_or_array", [](array<const double, 1>) { return "array"; }, arg("x"));

    m.def("by_arity", [](array<const float, 1>) { return 1; }, arg("x"));
    m.def("by_arity", [](array<const float, 1>, array<const float, 1>) { return 2; }, arg("x"), arg("y"));

    m.def("text_last", [](array<const float, 1>) { return "array"; }, arg("x"));
    m.def("text_last", [](const std::string& s) { return "text " + s; }, arg("x"));

    // What fits as it is goes before what would have to be converted, whatever the order.
    m.def(
        "converting", [](array<const float, 1, tenon::convert, tenon::narrowing>) { return "converted"; },
        arg("x"));
    m.def("converting", [](array<const double, 1>) { return "as it is"; }, arg("x"));
    m.def(
        "never_converting", [](array<const float, 1, tenon::convert, tenon::narrowing>) { return "taken"; },
        arg("x").noconvert());
    m.def(
        "rows_converted", [](array<const float, 2, tenon::convert, tenon::narrowing>) { return 2; },
        arg("x"));
    m.def(
        "rows_converted", [](array<const float, 1, tenon::convert, tenon::narrowing>) { return 1; },
        arg("x"));

    // Not asked before `unlisted_later`: a refusal is what tells pybind11's functions of us.
    m.def("unlisted", [](array<const float, 1>) { return "float32"; }, arg("x"));
    m.def("unlisted", [](array<const double, 1>) { return "float64"; }, arg("x"));

    binder::class_<model>(m, "Model")
        .def(binder::init<tenon::tensor>(), arg("weights"))
        .def(binder::init<std::int64_t>(), arg("n"))
        .def(binder::init<array<const float, 2>, std::int64_t>(), arg("rows"), arg("more"))
        .def("width", &model::width, arg("x"))
        .def("forget", &model::forget, arg("x"))
        .def("weights", [](model& self) { return self.weights.share(); })
        .def_static(
            "size_of", [](array<const float, 1> x) { return x.size(); }, arg("x"))
        .def(
            "__add__", [](model& self, array<const float, 1> x) { return self.width(x); },
            binder::is_operator(), arg("x"))
        .def("__call__", [](model& self, array<const float, 1> x) { return self.width(x); }, arg("x"));
}

}  // namespace bound
