// tests/compile_fail/array_cuda_subscript.cpp: the host reads an element of a CUDA argument by `x[i]`.
// must say: not readable by the host: pass data() to a kernel

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const float, 1>;
#else
using param = tenon::array<const float, 1, tenon::cuda>;
#endif

float first(const param& x) { return x[0]; }
