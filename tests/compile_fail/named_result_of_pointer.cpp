// tests/compile_fail/named_result_of_pointer.cpp: a result is made of a pointer, whose memory nobody owns.
// must say: who owns it? give it tensor::own(data, shape, deleter), or tenon::py::own(object, info)

#include <tenon/bind/results.hpp>

tenon::numpy_array<float, 1> give(float* data) {
#ifdef CORRECT
    return tenon::tensor::own(data, {3}, [](float* p) { delete[] p; });
#else
    return tenon::numpy_array<float, 1>(data, {3});
#endif
}
