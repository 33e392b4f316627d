// tests/compile_fail/view_too_many_indices.cpp: an element of a row is asked for by two indices.
// must say: give one integer for each axis of the view

#include <tenon/tenon.hpp>

#ifdef CORRECT
constexpr int rank = 2;
#else
constexpr int rank = 1;
#endif

float at(const tenon::view<const float, rank>& v) { return v(3, 4); }
