// tests/compile_fail/pybind11_object_owned.cpp: an object would be let go of without the GIL.
// must say: use tenon::py::own(object, info), which sees to that

#include <utility>

#include <pybind11/pybind11.h>
#include <tenon/py.hpp>

tenon::result<tenon::tensor> keep(pybind11::object owner, const tenon::tensor_info& info) {
#ifdef CORRECT
    return tenon::py::own(std::move(owner), info);
#else
    return tenon::tensor::own(std::move(owner), info);
#endif
}
