// src/py/import/own.cpp: memory that a Python object keeps alive becomes a tensor, with the GIL or without.
#include "all.hpp"

namespace tenon::py::detail {

TENON_INLINE result<tensor> own_object(PyObject* obj, bool is_given, const tensor_info& info) noexcept {
    if (obj == nullptr) return refused("owner", "there is no object: the pointer is null");
    keep_alive owner;
    const bool done = run_attached([&] {
        const ref given = ref::take(is_given ? obj : nullptr);
        const error_guard keep;
        if (interpreter* const here = interpreter::current()) owner = keep_object(obj, here);
        PyErr_Clear();  // no record of the interpreter: told by the result
    });
    if (!done || !owner) return refused("owner", "Python is not there any more, or has no memory left");
    return tensor::own(info, std::move(owner));
}

}  // namespace tenon::py::detail
