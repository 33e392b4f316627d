// tests/compile_fail/out_const.cpp: an out promises not to be written to.
// must say: or_empty_like: out is written to: its element type must not be const

#include <optional>

#include <tenon/bind/results.hpp>

using input = tenon::array<const float, 1>;
#ifdef CORRECT
using output = tenon::array<float, 1>;
#else
using output = tenon::array<const float, 1>;
#endif

auto result_for(const std::optional<output>& out, const input& x) { return tenon::or_empty_like(out, x); }
