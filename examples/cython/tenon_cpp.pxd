# examples/cython/tenon_cpp.pxd: what this example needs of Tenon's C++ interface, for `cimport`.
from libc.stdint cimport int64_t
from libcpp.optional cimport optional

cdef extern from "<tenon/py.hpp>" namespace "tenon" nogil:
    cppclass error:
        pass

    cppclass result[T]:  # a value, or the error that stood in its way
        bint has_value()
        T& value()
        const error& error()

    cppclass axes:
        axes(size_t rows, size_t columns)

    cppclass tensor_ref:  # any tensor, and a tensor that keeps its memory alive
        pass
    cppclass tensor(tensor_ref):
        @staticmethod
        result[tensor] own[V](V values, const axes& shape)  # a vector, which is moved

    # Cython has no numbers among its template arguments, so each view is named here.
    cppclass vector_view "tenon::view<double, 1>":
        double& operator[](int64_t column)
    cppclass matrix_view "tenon::view<double, 2>":
        @staticmethod
        result[matrix_view] of "from"(const tensor_ref&)
        int64_t shape(size_t axis)
        vector_view operator[](int64_t row)

cdef extern from "<tenon/py.hpp>" namespace "tenon::py":
    cppclass import_options:
        import_options()
        bint writable

    # Python exceptions come through as such.
    optional[tensor] from_python(object array, const import_options&) except *
    object to_python(result[tensor])
    object to_python(result[tensor], object like)
    void raise_error "tenon::py::raise"(const error&) except *
