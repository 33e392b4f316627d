// tests/compile_fail/array_numbers_on_device.cpp: a number that is to be on a device.
// must say: tenon::array: a number is in host memory; leave cuda, rocm and any_device away

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using place = tenon::cpu;
#else
using place = tenon::cuda;
#endif

std::int64_t size(const tenon::array<const float, 0, tenon::numbers, place>& x) { return x.size(); }
