// src/py/python_error.cpp: an error becomes a Python exception, and that a C++ one.
#include <tenon/py/python_error.hpp>
#include <tenon/py/raise.hpp>

namespace tenon::py::detail {

TENON_INLINE void throw_raised(const error& e) {
    raise(e, "tenon: ");
    throw python_error();
}

}  // namespace tenon::py::detail
