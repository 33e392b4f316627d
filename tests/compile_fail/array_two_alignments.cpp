// tests/compile_fail/array_two_alignments.cpp: an argument must be aligned in two ways.
// must say: state one alignment only

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const float, 1, tenon::aligned<64>>;
#else
using param = tenon::array<const float, 1, tenon::aligned<64>, tenon::aligned<32>>;
#endif

float first(const param& x) { return x(0); }
