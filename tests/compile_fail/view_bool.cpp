// tests/compile_fail/view_bool.cpp: foreign memory is read as C++ bools.
// must say: foreign memory may hold a 2 where C++ expects a bool: use tenon::bool8

#include <tenon/tenon.hpp>

#ifdef CORRECT
using truth = tenon::bool8;
#else
using truth = bool;
#endif

bool first(const tenon::tensor_ref& t) { return tenon::view<const truth, 1>::from(t)->data()[0]; }
