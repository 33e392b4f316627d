// tests/compile_fail/named_result_of_pointer.cpp: a result is made of memory that nobody owns.
// must say: who owns it? use tensor::own or py::own

#include <tenon/bind/results.hpp>

tenon::numpy_array<float, 1> give(float* data) {
#ifdef CORRECT
    return tenon::tensor::own(data, {3}, [](float* p) { delete[] p; });
#else
    return tenon::numpy_array<float, 1>(data, {3});
#endif
}
