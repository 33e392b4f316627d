// tests/compile_fail/array_unknown_property.cpp: a property is stated that there is not.
// must say: not a property; there are c_contiguous, f_contiguous

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const float, 1, tenon::c_contiguous>;
#else
using param = tenon::array<const float, 1, struct row_major>;
#endif

float first(const param& x) { return x(0); }
