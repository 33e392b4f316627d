// tests/compile_fail/vectorize_void.cpp: a function that returns nothing for an element.
// must say: the function must return a number for each element; to write to arrays bind a function that uses
// tenon::for_each

#include <tenon/bind/vectorize.hpp>

#ifdef CORRECT
double f(double x);
#else
void f(double x);
#endif

auto bound() { return tenon::vectorize(f); }
