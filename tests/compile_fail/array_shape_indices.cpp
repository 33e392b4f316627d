// tests/compile_fail/array_shape_indices.cpp: a row of stated shape is indexed as a matrix.
// must say: give one integer for each axis of the view

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const float, tenon::shape<tenon::any, 3>>;
#else
using param = tenon::array<const float, tenon::shape<3>>;
#endif

float first(const param& x) { return x(0, 0); }
