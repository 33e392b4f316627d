// tests/compile_fail/tensor_copied.cpp: a tensor is copied.
// must say: a tensor has one owner: std::move it, or keep a shared_tensor

#include <utility>

#include <tenon/tenon.hpp>

tenon::tensor keep(tenon::tensor& t) {
#ifdef CORRECT
    return std::move(t);
#else
    return t;
#endif
}
