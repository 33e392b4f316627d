// tests/compile_fail/view_const_to_mutable.cpp: a view that may write is made from one that may not.
// must say: const elements stay const: take a view<const T>

#include <tenon/tenon.hpp>

#ifdef CORRECT
using wanted = tenon::view<const float, 1>;
#else
using wanted = tenon::view<float, 1>;
#endif

wanted convert(const tenon::view<const float, 1>& v) { return v; }
