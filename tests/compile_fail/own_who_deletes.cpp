// tests/compile_fail/own_who_deletes.cpp: nobody says how memory is given back.
// must say: say who gives it back: own(data, shape, deleter)

#include <tenon/tenon.hpp>

bool give(float* data) {
#ifdef CORRECT
    return tenon::tensor::own(data, {2, 3}, [](float* p) { delete[] p; }).has_value();
#else
    return tenon::tensor::own(data, {2, 3}).has_value();
#endif
}
