// tests/compile_fail/one_of_bool.cpp: foreign memory may hold a 2 where C++ expects a bool.
// must say: bool is tenon::bool8

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using flag = tenon::bool8;
#else
using flag = bool;
#endif

bool empty(const tenon::array<const tenon::one_of<flag, int>, 1>& x) { return x.empty(); }
