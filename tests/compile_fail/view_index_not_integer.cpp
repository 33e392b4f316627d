// tests/compile_fail/view_index_not_integer.cpp: an element is asked for by a number with a fraction.
// must say: give one integer for each axis of the view

#include <tenon/tenon.hpp>

#ifdef CORRECT
using number = long;
#else
using number = double;
#endif

float at(const tenon::view<const float, 1>& v, number i) { return v(i); }
