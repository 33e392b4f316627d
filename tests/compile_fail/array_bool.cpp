// tests/compile_fail/array_bool.cpp: an argument is read as C++ bools.
// must say: a C++ bool may hold nothing but 0 and 1; take tenon::bool8

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const tenon::bool8, 1>;
#else
using param = tenon::array<const bool, 1>;
#endif

bool first(const param& x) { return x(0); }
