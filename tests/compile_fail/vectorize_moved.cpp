// tests/compile_fail/vectorize_moved.cpp: a value that each call would move from.
// must say: tenon::vectorize: what is passed on to each call cannot be moved from it

#include <tenon/bind/vectorize.hpp>

#ifdef CORRECT
double f(double x, const void*& y);
#else
double f(double x, const void*&& y);
#endif

auto bound() { return tenon::vectorize(f); }
