// tests/compile_fail/array_numbers_mutable.cpp: a number that is to be written to.
// must say: tenon::array: numbers needs a const element type; a number cannot be written to

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using element = const float;
#else
using element = float;
#endif

std::int64_t size(const tenon::array<element, tenon::dynamic_rank, tenon::numbers>& x) { return x.size(); }
