// tests/compile_fail/array_any_rank_indexed.cpp: an argument of any number of axes is indexed as a matrix.
// must say: state the rank to index it

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const float, 2>;
#else
using param = tenon::array<const float>;
#endif

float corner(const param& x) { return x(0, 0); }
