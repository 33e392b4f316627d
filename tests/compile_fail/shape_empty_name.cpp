// tests/compile_fail/shape_empty_name.cpp: an extent has a name without letters.
// must say: tenon::shape: the name of an extent has 1 to 15 letters

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using points = tenon::array<const float, tenon::shape<tenon::any, 3>>;
#else
using points = tenon::array<const float, tenon::shape<"", 3>>;
#endif

std::int64_t count(points x) { return x.shape(0); }
