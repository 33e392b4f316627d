// tests/compile_fail/device_view_walked.cpp: the host walks accelerator memory.
// must say: not readable by the host: pass data() to a kernel

#include <tenon/tenon.hpp>

#ifdef CORRECT
using window = tenon::view<const float, 1>;
#else
using window = tenon::device_view<const float, 1>;
#endif

float sum(const window& w) {
    float total = 0;
    for (const float x : w) total += x;
    return total;
}
