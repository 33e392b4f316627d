// tests/compile_fail/view_dynamic_subscript.cpp: rows are taken of a view whose rank is not known.
// must say: state the rank, 1 or more: view<T, 1>

#include <tenon/tenon.hpp>

#ifdef CORRECT
constexpr int rank = 1;
#else
constexpr int rank = tenon::dynamic_rank;
#endif

const void* row(const tenon::view<const float, rank>& v) { return &v[0]; }
