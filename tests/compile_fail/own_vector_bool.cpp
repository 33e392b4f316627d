// tests/compile_fail/own_vector_bool.cpp: a vector of bits is given away as a tensor.
// must say: std::vector<bool> is no array of elements: use std::vector<tenon::bool8>

#include <utility>
#include <vector>

#include <tenon/tenon.hpp>

#ifdef CORRECT
using truth = tenon::bool8;
#else
using truth = bool;
#endif

bool give(std::vector<truth> v) { return tenon::tensor::own(std::move(v)).has_value(); }
