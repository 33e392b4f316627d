// tests/compile_fail/array_convert_untyped.cpp: an argument is converted to no type and to no order.
// must say: convert needs an element type or an order to convert to

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const void, 1, tenon::c_contiguous, tenon::convert>;
#else
using param = tenon::array<const void, 1, tenon::convert>;
#endif

bool empty(const param& x) { return x.empty(); }
