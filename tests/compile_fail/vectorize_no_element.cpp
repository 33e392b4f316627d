// tests/compile_fail/vectorize_no_element.cpp: a function that returns what no array can have for an element.
// must say: tenon::vectorize: the function must return a number, as an array can have for an element

#include <tenon/bind/vectorize.hpp>

#ifdef CORRECT
double f(double x);
#else
double* f(double x);
#endif

auto bound() { return tenon::vectorize(f); }
