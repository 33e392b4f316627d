// tests/compile_fail/one_of_twice.cpp: two C++ types for one element type: which would it be?
// must say: two of these are one element type

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using other = int;
#else
using other = long;
#endif

bool empty(const tenon::array<const tenon::one_of<long long, other>, 1>& x) { return x.empty(); }
