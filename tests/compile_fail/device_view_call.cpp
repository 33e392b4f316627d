// tests/compile_fail/device_view_call.cpp: the host reads an element of accelerator memory by `dv(i)`.
// must say: not readable by the host: pass data() to a kernel

#include <tenon/tenon.hpp>

#ifdef CORRECT
using window = tenon::view<const float, 1>;
#else
using window = tenon::device_view<const float, 1>;
#endif

float first(const window& w) { return w(0); }
