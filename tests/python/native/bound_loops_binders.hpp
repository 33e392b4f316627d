// tests/python/native/bound_loops_binders.hpp: how both binders bind the loops, in the same words.
#pragma once

#include "bound_loops.hpp"

namespace loops {

inline void bind_all(binder::module_& m) {
    using namespace binder::literals;
    m.def("added", &added, "x"_a, "y"_a);
    m.def("add_to", &add_to, "x"_a, "y"_a);
    m.def("listed", &listed, "x"_a);
    m.def("taken_float64", &taken<double>, "x"_a);
    m.def("taken_float32", &taken<float>, "x"_a);
    m.def("taken_int8", &taken<std::int8_t>, "x"_a);
    m.def("taken_uint8", &taken<std::uint8_t>, "x"_a);
    m.def("taken_int64", &taken<std::int64_t>, "x"_a);
    m.def("taken_uint64", &taken<std::uint64_t>, "x"_a);
    m.def("taken_bool", &taken<tenon::bool8>, "x"_a);
    m.def("taken_complex64", &taken<std::complex<float>>, "x"_a);
    m.def("float16_bits", float16_bits, "x"_a);
    m.def("bfloat16_bits", bfloat16_bits, "x"_a);
    m.def("given_back", &given_back, "x"_a);
    m.def("of_shape", &of_shape, "x"_a, "has_axes"_a);
    m.def("remember", &remember, "x"_a);
    m.def("sums", &sums, "xs"_a);
    m.def("hypot3", tenon::vectorize(hypot3), "x"_a, "y"_a, "z"_a);
    m.def("scaled", tenon::vectorize(&scaled), "x"_a, "twice"_a = true);
    m.def("turned", tenon::vectorize(turned), "z"_a);
    m.def("is_even", tenon::vectorize(is_even), "x"_a);
    m.def("shifted", tenon::vectorize(shifted), "x"_a, "by"_a);
    m.def("root", tenon::vectorize(root), "x"_a);
    m.def("halved", tenon::vectorize(halved), "x"_a);
    m.def("times", tenon::vectorize([factor = 3.0](double x) { return factor * x; }), "x"_a);
    m.def("kind", tenon::vectorize([](std::int64_t) { return std::int8_t{1}; }), "x"_a);
    m.def("kind", tenon::vectorize([](double) { return std::int8_t{2}; }), "x"_a);
    m.def("kind", tenon::vectorize([](std::complex<double>) { return std::int8_t{3}; }), "x"_a);
}

}  // namespace loops
