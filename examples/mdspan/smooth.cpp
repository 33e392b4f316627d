// examples/mdspan/smooth.cpp: an algorithm written for mdspan, on arrays from Python.
#include <version>

#if defined(__cpp_lib_mdspan)
#include <array>
#include <mdspan>
namespace md = std;
#else
#include <cuda/std/array>
#include <cuda/std/mdspan>  // the same for older compilers: NVIDIA's CCCL, of which no GPU is asked
namespace md = cuda::std;
#endif

#include <tenon/bind/function.hpp>

template <class T>
using matrix = md::mdspan<T, md::dextents<std::int64_t, 2>, md::layout_stride>;

/// Each inner point of `to` becomes the mean of its four neighbours in `from`; the border stays as it is.
/// Knows nothing of Python.
static void smooth(matrix<const double> from, matrix<double> to) {
    using at = md::array<std::int64_t, 2>;
    const std::int64_t rows = from.extent(0), columns = from.extent(1);
    for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j) {
            const bool border = i == 0 || j == 0 || i == rows - 1 || j == columns - 1;
            to[at{i, j}] =
                border
                    ? from[at{i, j}]
                    : (from[at{i - 1, j}] + from[at{i + 1, j}] + from[at{i, j - 1}] + from[at{i, j + 1}]) / 4;
        }
}

static auto smoothed(tenon::array<const double, 2> grid) {
    auto out = tenon::empty_like(grid);
    smooth(tenon::py::or_raise(grid.to<matrix<const double>>()),
           tenon::py::or_raise(out.to<matrix<double>>()));
    return out;
}

static PyMethodDef methods[] = {
    tenon::py::function<&smoothed>("smoothed", {"grid"},
                                   "One step of smoothing: the mean of the four neighbours."),
    {}};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "smooth", nullptr, 0, methods, {}, {}, {}, {}};

PyMODINIT_FUNC PyInit_smooth() { return PyModuleDef_Init(&definition); }
