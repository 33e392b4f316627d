// tests/compile_fail/own_python_reference.cpp: a py::ref would be let go of without the GIL.
// must say: use tenon::py::own(object, info), which sees to that

#include <utility>

#include <tenon/py.hpp>

tenon::result<tenon::tensor> keep(tenon::py::ref owner, const tenon::tensor_info& info) {
#ifdef CORRECT
    return tenon::py::own(std::move(owner), info);
#else
    return tenon::tensor::own(std::move(owner), info);
#endif
}
