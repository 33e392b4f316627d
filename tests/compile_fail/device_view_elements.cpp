// tests/compile_fail/device_view_elements.cpp: the host walks all elements of accelerator memory.
// must say: not readable by the host: pass data() to a kernel

#include <tenon/tenon.hpp>

#ifdef CORRECT
using window = tenon::view<const float>;
#else
using window = tenon::device_view<const float>;
#endif

float sum(const window& w) {
    float total = 0;
    for (const float x : w.elements()) total += x;
    return total;
}
