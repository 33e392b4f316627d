// tests/compile_fail/nanobind_capsule_owned.cpp: a capsule is to keep memory, as with nanobind.
// must say: std::move the owner, or use tenon::py::own

#include <nanobind/nanobind.h>
#include <tenon/py.hpp>

tenon::result<tenon::tensor> keep(nanobind::capsule owner, const tenon::tensor_info& info) {
#ifdef CORRECT
    return tenon::py::own(owner, info);
#else
    return tenon::tensor::own(owner, info);
#endif
}
