// tests/compile_fail/own_shaped_not_moved.cpp: a vector is given away, in another shape, and kept.
// must say: move the values in: own(std::move(values), shape)

#include <utility>
#include <vector>

#include <tenon/tenon.hpp>

bool give(std::vector<float>& v) {
#ifdef CORRECT
    return tenon::tensor::own(std::move(v), {2, 3}).has_value();
#else
    return tenon::tensor::own(v, {2, 3}).has_value();
#endif
}
