// tests/compile_fail/view_const_assigned.cpp: a view that may not write is assigned to one that may.
// must say: const elements stay const: take a view<const T>

#include <tenon/tenon.hpp>

#ifdef CORRECT
using wanted = tenon::view<const float, 1>;
#else
using wanted = tenon::view<float, 1>;
#endif

void assign(const tenon::view<const float, 1>& v, wanted& to) { to = v; }
