// tests/compile_fail/view_too_few_indices.cpp: an element of a matrix is asked for by one index.
// must say: give one integer for each axis of the view

#include <tenon/tenon.hpp>

#ifdef CORRECT
constexpr int rank = 1;
#else
constexpr int rank = 2;
#endif

float at(const tenon::view<const float, rank>& v) { return v(3); }
