// tests/compile_fail/function_takes_view.cpp: a bound function takes a view.
// must say: a view or a span keeps nothing alive: take and keep a tenon::array

#include <tenon/bind/array.hpp>
#include <tenon/bind/function.hpp>  // not precompiled: Clang 14 crashes then

#ifdef CORRECT
float first(tenon::array<const float, 1> x) { return x(0); }
#else
float first(tenon::view<const float, 1> x) { return x(0); }
#endif

PyMethodDef methods[] = {tenon::py::function<&first>("first", {"x"}), {}};
