// tests/compile_fail/visit_nothing_taken.cpp: a function that takes the array with none of its element types.
// must say: the function takes these arrays with none of their element types

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using element = double;
#else
using element = int;
#endif

auto size(const tenon::array<const tenon::one_of<float, double>, 1>& x) {
    return x.visit([](tenon::array<const element, 1> typed) { return typed.size(); });
}
