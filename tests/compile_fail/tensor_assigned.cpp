// tests/compile_fail/tensor_assigned.cpp: a tensor is assigned by copying.
// must say: a tensor has one owner: std::move it

#include <utility>

#include <tenon/tenon.hpp>

void keep(tenon::tensor& t, tenon::tensor& kept) {
#ifdef CORRECT
    kept = std::move(t);
#else
    kept = t;
#endif
}
