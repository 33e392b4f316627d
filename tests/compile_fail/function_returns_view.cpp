// tests/compile_fail/function_returns_view.cpp: a bound function returns a view of its argument.
// must say: a view or a span keeps nothing alive: take and keep a tenon::array

#include <tenon/bind/array.hpp>
#include <tenon/bind/function.hpp>  // not precompiled: Clang 14 crashes then

#ifdef CORRECT
auto same(tenon::array<const float, 1> x) { return x; }
#else
auto same(tenon::array<const float, 1> x) { return x.view(); }
#endif

PyMethodDef methods[] = {tenon::py::function<&same>("same", {"x"}), {}};
