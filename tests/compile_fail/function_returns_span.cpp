// tests/compile_fail/function_returns_span.cpp: a bound function returns a span of its argument.
// must say: a view or a span keeps nothing alive: take and keep a tenon::array

#include <tenon/bind/array.hpp>
#include <tenon/bind/function.hpp>  // not precompiled: Clang 14 crashes then

using vector = tenon::array<const float, 1, tenon::c_contiguous>;
#ifdef CORRECT
auto same(vector x) { return x; }
#else
auto same(vector x) { return x.span(); }
#endif

PyMethodDef methods[] = {tenon::py::function<&same>("same", {"x"}), {}};
