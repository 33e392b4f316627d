// tests/compile_fail/array_convert_mutable.cpp: what is written into a converted copy would be lost.
// must say: convert needs a const element type

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const float, 1, tenon::convert>;
#else
using param = tenon::array<float, 1, tenon::convert>;
#endif

float first(const param& x) { return x(0); }
