// tests/compile_fail/view_void_as_bool.cpp: a window without a type is opened as C++ bools.
// must say: bool is tenon::bool8 here

#include <tenon/tenon.hpp>

#ifdef CORRECT
using truth = const tenon::bool8;
#else
using truth = const bool;
#endif

bool is_truths(const tenon::view<const void>& v) { return v.as<truth, 1>().has_value(); }
