// tests/compile_fail/array_odd_alignment.cpp: an alignment is asked for that is no power of two.
// must say: the alignment must be a power of two

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const float, 1, tenon::aligned<64>>;
#else
using param = tenon::array<const float, 1, tenon::aligned<48>>;
#endif

float first(const param& x) { return x(0); }
