// tests/compile_fail/array_cuda_span.cpp: a CUDA argument is taken for a span of host memory.
// must say: a span needs typed elements in memory that the host can read

#include <span>

#include <tenon/bind/array.hpp>

#ifdef CORRECT
using param = tenon::array<const float, 1, tenon::c_contiguous, tenon::cpu>;
#else
using param = tenon::array<const float, 1, tenon::c_contiguous, tenon::cuda>;
#endif

std::span<const float> all(const param& x) { return x.span(); }
