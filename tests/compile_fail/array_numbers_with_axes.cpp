// tests/compile_fail/array_numbers_with_axes.cpp: a number that is to have axes.
// must say: tenon::array: a number has no axes; leave the rank open

#include <tenon/bind/array.hpp>

#ifdef CORRECT
constexpr int rank = tenon::dynamic_rank;
#else
constexpr int rank = 1;
#endif

std::int64_t size(const tenon::array<const float, rank, tenon::numbers>& x) { return x.size(); }
