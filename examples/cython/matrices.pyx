# examples/cython/matrices.pyx: takes any array into a typed view, and gives C++ memory back, both without a copy.
# distutils: language = c++
# cython: language_level=3, cpp_locals=True

from libc.stdint cimport int64_t
from libcpp.optional cimport optional
from libcpp.utility cimport move
from libcpp.vector cimport vector
from tenon_cpp cimport axes, from_python, import_options, matrix_view, raise_error, result, tensor, to_python


def scale(array, double factor):
    """Multiplies a matrix of doubles in place, whichever library it comes from."""
    cdef import_options options = import_options()
    options.writable = True
    cdef optional[tensor] taken = from_python(array, options)
    cdef result[matrix_view] view = matrix_view.of(taken.value())
    if not view.has_value():
        raise_error(view.error())
    cdef matrix_view matrix = view.value()
    cdef int64_t row, column
    with nogil:
        for row in range(matrix.shape(0)):
            for column in range(matrix.shape(1)):
                matrix[row][column] *= factor


def multiplication_table(size_t rows, size_t columns, like=None):
    """A new matrix in a std::vector, as an array of the library that `like` comes from."""
    cdef vector[double] values = vector[double]()
    cdef size_t row, column
    for row in range(rows):
        for column in range(columns):
            values.push_back((row + 1) * (column + 1))
    return to_python(tensor.own[vector[double]](move(values), axes(rows, columns)), like)
