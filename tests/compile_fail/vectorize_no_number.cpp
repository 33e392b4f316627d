// tests/compile_fail/vectorize_no_number.cpp: a function that has nothing to walk.
// must say: tenon::vectorize: no parameter is a number, taken by value or as a const reference

#include <tenon/bind/vectorize.hpp>

#ifdef CORRECT
double f(double x);
#else
double f(double& x);
#endif

auto bound() { return tenon::vectorize(f); }
