// tests/compile_fail/view_rank_converted.cpp: a matrix is passed for a row.
// must say: the views have different ranks: view the tensor anew, or index

#include <tenon/tenon.hpp>

#ifdef CORRECT
constexpr int rank = 1;
#else
constexpr int rank = 2;
#endif

tenon::view<float, 1> row(const tenon::view<float, rank>& v) { return v; }
