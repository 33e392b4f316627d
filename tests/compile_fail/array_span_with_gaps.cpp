// tests/compile_fail/array_span_with_gaps.cpp: an argument that may have gaps is taken for a span.
// must say: result<std::span<const float

#include <span>

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const float, 1, tenon::c_contiguous>;
#else
using param = tenon::array<const float, 1>;
#endif

std::span<const float> all(const param& x) { return x.span(); }
