// tests/compile_fail/array_impossible_rank.cpp: more axes are asked for than a tensor can have.
// must say: no tensor has this many axes

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const float, 64>;
#else
using param = tenon::array<const float, 65>;
#endif

bool empty(const param& x) { return x.empty(); }
