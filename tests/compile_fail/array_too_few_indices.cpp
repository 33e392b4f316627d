// tests/compile_fail/array_too_few_indices.cpp: an element of a matrix argument is asked for by one index.
// must say: give one integer for each axis of the view

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const float, 1>;
#else
using param = tenon::array<const float, 2>;
#endif

float first(const param& x) { return x(0); }
