// tests/compile_fail/function_named_in_tuple.cpp: the arrays of a tuple have extents with a name.
// must say: tenon::shape: a name relates parameters of a function, not the items of a list

#include <tuple>

#include <tenon/bind/array.hpp>
#include <tenon/bind/function.hpp>  // not precompiled: Clang 14 crashes then

using row = tenon::array<const float, tenon::shape<"n">>;

#ifdef CORRECT
float first(row x, row y) { return x(0) + y(0); }
PyMethodDef methods[] = {tenon::py::function<&first>("first", {"x", "y"}), {}};
#else
float first(const std::tuple<row, row>& x) { return std::get<0>(x)(0); }
PyMethodDef methods[] = {tenon::py::function<&first>("first", {"x"}), {}};
#endif
