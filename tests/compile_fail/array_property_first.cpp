// tests/compile_fail/array_property_first.cpp: a property stands where the element type does.
// must say: the element type comes first, and the rank or shape before properties

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const void, tenon::dynamic_rank, tenon::c_contiguous>;
#else
using param = tenon::array<tenon::c_contiguous>;
#endif

std::int64_t size_of(const param& x) { return x.size(); }
