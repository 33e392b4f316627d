// tests/compile_fail/array_lossy_and_narrowing.cpp: a conversion may lose digits alone, or anything.
// must say: lossy goes further than narrowing

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const float, 1, tenon::convert, tenon::lossy>;
#else
using param = tenon::array<const float, 1, tenon::convert, tenon::narrowing, tenon::lossy>;
#endif

bool empty(const param& x) { return x.empty(); }
