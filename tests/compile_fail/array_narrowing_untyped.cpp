// tests/compile_fail/array_narrowing_untyped.cpp: digits can be lost on the way to a type, not to an order.
// must say: narrowing and lossy are about element types

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const void, 1, tenon::c_contiguous, tenon::convert>;
#else
using param = tenon::array<const void, 1, tenon::c_contiguous, tenon::convert, tenon::narrowing>;
#endif

bool empty(const param& x) { return x.empty(); }
