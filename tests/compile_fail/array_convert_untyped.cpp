// tests/compile_fail/array_convert_untyped.cpp: an argument is converted to no type.
// must say: convert needs an element type to convert to

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const float, 1, tenon::convert>;
#else
using param = tenon::array<const void, 1, tenon::convert>;
#endif

bool empty(const param& x) { return x.empty(); }
