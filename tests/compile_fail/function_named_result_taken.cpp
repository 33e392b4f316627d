// tests/compile_fail/function_named_result_taken.cpp: a parameter is what is a result alone.
// must say: a type that names a library is a result: take a tenon::array

#include <tenon/bind/array.hpp>
#include <tenon/bind/function.hpp>  // not precompiled: Clang 14 crashes then

#ifdef CORRECT
void fill(tenon::array<float, 1>) {}
#else
void fill(const tenon::numpy_array<float, 1>&) {}
#endif

PyMethodDef methods[] = {tenon::py::function<&fill>("fill", {"x"}), {}};
