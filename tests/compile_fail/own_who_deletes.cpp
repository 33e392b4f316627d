// tests/compile_fail/own_who_deletes.cpp: memory becomes a tensor, and nobody says how it is given back.
// must say: say who gives it back: own(data, shape, deleter)

#include <tenon/tenon.hpp>

bool give(float* data) {
#ifdef CORRECT
    return tenon::tensor::own(data, {2, 3}, [](float* p) { delete[] p; }).has_value();
#else
    return tenon::tensor::own(data, {2, 3}).has_value();
#endif
}
