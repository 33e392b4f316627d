// tests/compile_fail/array_lossy_alone.cpp: how much may be lost says nothing where nothing is converted.
// must say: lossy says how far convert may go

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const float, 1, tenon::convert, tenon::lossy>;
#else
using param = tenon::array<const float, 1, tenon::lossy>;
#endif

bool empty(const param& x) { return x.empty(); }
