// tests/compile_fail/one_of_const_inside.cpp: each element type promises by itself not to be written to.
// must say: const stands before the set

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using elements = const tenon::one_of<float, double>;
#else
using elements = tenon::one_of<const float, const double>;
#endif

bool empty(const tenon::array<elements, 1>& x) { return x.empty(); }
