// tests/compile_fail/view_dynamic_walked.cpp: a view is walked whose rank is not known.
// must say: walk elements(), use tenon::for_each, or state the rank

#include <tenon/tenon.hpp>

#ifdef CORRECT
constexpr int rank = 1;
#else
constexpr int rank = tenon::dynamic_rank;
#endif

float sum(const tenon::view<const float, rank>& v) {
    float total = 0;
    for (const float x : v) total += x;
    return total;
}
