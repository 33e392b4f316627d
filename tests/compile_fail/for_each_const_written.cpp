// tests/compile_fail/for_each_const_written.cpp: a loop that writes to const elements.
// must say: tenon::for_each: the function must take an element of each window: T or const T&, and T& where T
// is not const

#include <tenon/tensor/for_each.hpp>

#ifdef CORRECT
using element = float;
#else
using element = const float;
#endif

bool clear(const tenon::view<element, 1>& w) {
    return static_cast<bool>(tenon::for_each(w, [](float& x) { x = 0; }));
}
