// tests/compile_fail/array_narrowing_alone.cpp: how far to convert says nothing where nothing is converted.
// must say: narrowing says how far convert may go

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const float, 1, tenon::convert, tenon::narrowing>;
#else
using param = tenon::array<const float, 1, tenon::narrowing>;
#endif

bool empty(const param& x) { return x.empty(); }
