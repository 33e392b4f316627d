// tests/compile_fail/for_each_device.cpp: a loop over elements that the host cannot read.
// must say: tenon::for_each: not readable by the host: pass data() to a kernel

#include <tenon/tensor/for_each.hpp>

#ifdef CORRECT
using window = tenon::view<float, 1>;
#else
using window = tenon::device_view<float, 1>;
#endif

bool clear(const window& w) {
    return static_cast<bool>(tenon::for_each(w, [](float& x) { x = 0; }));
}
