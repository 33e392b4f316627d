// tests/compile_fail/array_two_devices.cpp: an argument must be in two places.
// must say: state one device only

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const float, 1, tenon::cpu>;
#else
using param = tenon::array<const float, 1, tenon::cpu, tenon::cuda>;
#endif

float first(const param& x) { return x(0); }
