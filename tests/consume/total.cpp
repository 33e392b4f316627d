// tests/consume/total.cpp: the program's second file: what the headers declare is there once, however many
// include them.
#include <tenon/tenon.hpp>

float total(const tenon::tensor& t) {
    float sum = 0;
    const auto x = tenon::view<const float, 1>::from(t);
    if (!x) return -1;
    for (const float value : *x) sum += value;
    return sum;
}
