// tests/compile_fail/array_const_written.cpp: an argument of const elements is written to.
// must say (g++): assignment of read-only location
// must say (clang++): cannot assign to return value because function 'operator()<int>' returns a const value

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<float, 1>;
#else
using param = tenon::array<const float, 1>;
#endif

void clear(const param& x) { x(0) = 0; }
