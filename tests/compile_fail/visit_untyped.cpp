// tests/compile_fail/visit_untyped.cpp: an array of any element type has no list of types to try.
// must say: state the types, one_of<float, double>, or use dispatch_dtype

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const tenon::one_of<float, double>, 1>;
#else
using param = tenon::array<const void, 1>;
#endif

void look(const param& x) {
    x.visit([](const auto&) {});
}
