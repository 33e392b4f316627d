// tests/compile_fail/for_each_untyped.cpp: a loop over elements of an open type.
// must say: tenon::for_each: an element type is open: take a view of one, or dispatch

#include <tenon/tensor/for_each.hpp>

#ifdef CORRECT
using window = tenon::view<float>;
#else
using window = tenon::view<void>;
#endif

bool clear(const window& w) {
    return static_cast<bool>(tenon::for_each(w, [](auto& x) { x = 0; }));
}
