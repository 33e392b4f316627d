// tests/compile_fail/array_two_orders.cpp: an argument must be row-major and column-major.
// must say: any_contiguous contradict each other

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const float, 1, tenon::c_contiguous>;
#else
using param = tenon::array<const float, 1, tenon::c_contiguous, tenon::f_contiguous>;
#endif

float first(const param& x) { return x(0); }
