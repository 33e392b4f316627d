// tests/compile_fail/vectorize_generic.cpp: a function that can be called in several ways.
// must say: tenon::vectorize: give a function, or an object with one operator(), const and no template

#include <tenon/bind/vectorize.hpp>

#ifdef CORRECT
constexpr auto f = [](double x) { return x; };
#else
constexpr auto f = [](auto x) { return x; };
#endif

auto bound() { return tenon::vectorize(f); }
