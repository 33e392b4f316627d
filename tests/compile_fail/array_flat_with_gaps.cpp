// tests/compile_fail/array_flat_with_gaps.cpp: elements side by side, where there may be gaps between them.
// must say: state any_contiguous

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const float, 2, tenon::any_contiguous>;
#else
using param = tenon::array<const float, 2>;
#endif

auto all(const param& x) { return x.flat(); }
