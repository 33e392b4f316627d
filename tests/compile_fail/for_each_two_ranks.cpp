// tests/compile_fail/for_each_two_ranks.cpp: a loop over windows that never have one shape.
// must say: these never have one shape, for their ranks differ; for NumPy's broadcasting write
// for_each(tenon::broadcast, ...)

#include <tenon/tensor/for_each.hpp>

bool add(const tenon::view<const float, 1>& row, const tenon::view<float, 2>& to) {
    const auto plus = [](float x, float& sum) { sum += x; };
#ifdef CORRECT
    return static_cast<bool>(tenon::for_each(tenon::broadcast, row, to, plus));
#else
    return static_cast<bool>(tenon::for_each(row, to, plus));
#endif
}
