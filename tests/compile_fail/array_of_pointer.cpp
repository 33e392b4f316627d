// tests/compile_fail/array_of_pointer.cpp: an array is made of a pointer, as nanobind's can be.
// must say: return a numpy_array of tensor::own instead

#include <tenon/bind/results.hpp>

#ifdef CORRECT
tenon::result<tenon::tensor> give(float* data) {
    return tenon::tensor::own(data, {3}, [](float* p) { delete[] p; });
}
#else
tenon::array<float, 1> give(float* data) { return tenon::array<float, 1>(data, {3}); }
#endif
