// tests/compile_fail/own_not_moved.cpp: a vector is given away and kept.
// must say: tensor::own: move the object in, with std::move

#include <utility>
#include <vector>

#include <tenon/tenon.hpp>

bool give(std::vector<float>& v) {
#ifdef CORRECT
    return tenon::tensor::own(std::move(v)).has_value();
#else
    return tenon::tensor::own(v).has_value();
#endif
}
