// tests/compile_fail/for_each_no_window.cpp: a loop over something that is no window.
// must say: tenon::for_each: give windows (tenon::view, tenon::array), then the function

#include <vector>

#include <tenon/tensor/for_each.hpp>

#ifdef CORRECT
using values = tenon::view<float, 1>;
#else
using values = std::vector<float>;
#endif

bool clear(values& v) {
    return static_cast<bool>(tenon::for_each(v, [](float& x) { x = 0; }));
}
