// examples/model/model.cpp: a class that keeps a tensor for as long as it lives, and hands it out again.
#include <stdexcept>
#include <utility>

#include <nanobind/nanobind.h>
#include <tenon/bind/nanobind.hpp>

/// One layer of a network: y = x W^T. It reads the caller's weights where they are.
class linear {
public:
    explicit linear(tenon::tensor weights)
        : kept_(std::move(weights)), w_(tenon::py::or_raise(tenon::view<const float, 2>::from(kept_))) {}

    auto apply(tenon::array<const float, 2> x) const {
        if (x.shape(1) != w_.shape(1))
            throw std::invalid_argument("x must have as many columns as the weights");
        auto y = tenon::empty_like(x, {x.shape(0), w_.shape(0)});
        for (std::int64_t i = 0; i < y.shape(0); ++i)
            for (std::int64_t j = 0; j < y.shape(1); ++j) {
                y(i, j) = 0;
                for (std::int64_t k = 0; k < x.shape(1); ++k) y(i, j) += x(i, k) * w_(j, k);
            }
        return y;
    }
    auto weights() { return kept_.share(); }

private:
    tenon::tensor kept_;             // any array: what it must be is looked at once, by the view
    tenon::view<const float, 2> w_;  // into kept_
};

NB_MODULE(model, module) {
    using namespace nanobind::literals;
    nanobind::class_<linear>(module, "Linear")
        .def(nanobind::init<tenon::tensor>(), "weights"_a)
        .def("__call__", &linear::apply, "x"_a)
        .def_prop_ro("weights", &linear::weights);
}
