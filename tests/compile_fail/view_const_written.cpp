// tests/compile_fail/view_const_written.cpp: an element of a view of const elements is written.
// must say (g++): assignment of read-only location
// must say (clang++): cannot assign to return value because function 'operator()<int>' returns a const value
// 'operator\(\)<int>' returns a const value

#include <tenon/tenon.hpp>

#ifdef CORRECT
using element = float;
#else
using element = const float;
#endif

void clear(const tenon::view<element, 1>& v) { v(0) = 0; }
