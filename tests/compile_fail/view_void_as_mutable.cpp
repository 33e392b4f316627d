// tests/compile_fail/view_void_as_mutable.cpp: a window on const memory is opened for writing.
// must say: const elements stay const: write as<const T>()

#include <tenon/tenon.hpp>

#ifdef CORRECT
using element = const float;
#else
using element = float;
#endif

bool is_floats(const tenon::view<const void>& v) { return v.as<element, 1>().has_value(); }
