// tests/compile_fail/array_no_rank.cpp: something else stands where the rank belongs.
// must say: the second argument is a rank or a tenon::shape<...>

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const float, 2>;
#else
using param = tenon::array<const float, nullptr>;
#endif

bool empty(const param& x) { return x.empty(); }
