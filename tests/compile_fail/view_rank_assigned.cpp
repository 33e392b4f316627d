// tests/compile_fail/view_rank_assigned.cpp: a matrix is assigned to a row.
// must say: the views have different ranks: view the tensor anew, or index

#include <tenon/tenon.hpp>

#ifdef CORRECT
constexpr int rank = 1;
#else
constexpr int rank = 2;
#endif

void assign(tenon::view<float, 1>& row, const tenon::view<float, rank>& v) { row = v; }
