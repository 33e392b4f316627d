// tests/compile_fail/nanobind_object_owned.cpp: an object would be let go of without the GIL.
// must say: use tenon::py::own(object, info), which sees to that

#include <utility>

#include <nanobind/nanobind.h>
#include <tenon/py.hpp>

tenon::result<tenon::tensor> keep(nanobind::object owner, const tenon::tensor_info& info) {
#ifdef CORRECT
    return tenon::py::own(std::move(owner), info);
#else
    return tenon::tensor::own(std::move(owner), info);
#endif
}
