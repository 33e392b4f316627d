// tests/compile_fail/own_not_described.cpp: an object is given away that says nothing of its memory.
// must say: tensor::own: say what the object holds: by a function `tenon::tensor_info describe(T&)`

#include <utility>
#include <vector>

#include <tenon/tenon.hpp>

struct image {
    std::vector<float> pixels;
};
#ifdef CORRECT
tenon::tensor_info describe(image& i) {
    return tenon::tensor_info::contiguous(i.pixels.data(), i.pixels.size());
}
#endif

bool give(image i) { return tenon::tensor::own(std::move(i)).has_value(); }
