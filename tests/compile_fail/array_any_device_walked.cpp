// tests/compile_fail/array_any_device_walked.cpp: the host walks an argument that may be on any device.
// must say: not readable by the host: pass data() to a kernel

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const float, 1, tenon::cpu>;
#else
using param = tenon::array<const float, 1, tenon::any_device>;
#endif

float sum(const param& x) {
    float total = 0;
    for (const float value : x) total += value;
    return total;
}
