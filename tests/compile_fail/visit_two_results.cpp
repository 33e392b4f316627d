// tests/compile_fail/visit_two_results.cpp: what comes back would depend on what comes in.
// must say: the function must always return the same type, or arrays that differ in their element types alone

#include <tenon/bind/array.hpp>

#ifdef CORRECT
constexpr auto first_of = [](const auto& typed) -> double { return typed(0); };
#else
constexpr auto first_of = [](const auto& typed) { return typed(0); };
#endif

auto first(const tenon::array<const tenon::one_of<float, double>, 1>& x) { return x.visit(first_of); }
