// examples/three_arrays/three_arrays.cpp: a function that returns three arrays, as a tuple.
#include <algorithm>
#include <stdexcept>
#include <tuple>

#include <pybind11/pybind11.h>
#include <tenon/bind/pybind11.hpp>

/// The least, the mean and the greatest value of each column.
static auto summary(tenon::array<const double, 2> table) {
    const auto rows = table.shape(0), columns = table.shape(1);
    if (rows == 0) throw std::invalid_argument("summary(): the table has no rows");
    auto least = tenon::empty_like(table, {columns});
    auto mean = tenon::empty_like(table, {columns});
    auto greatest = tenon::empty_like(table, {columns});
    for (std::int64_t c = 0; c < columns; ++c) {
        least(c) = greatest(c) = table(0, c);
        double sum = 0;
        for (auto row : table) {
            least(c) = std::min(least(c), row(c));
            greatest(c) = std::max(greatest(c), row(c));
            sum += row(c);
        }
        mean(c) = sum / static_cast<double>(rows);
    }
    return std::tuple(least, mean, greatest);
}

PYBIND11_MODULE(three_arrays, module) {
    module.def("summary", &summary, pybind11::arg("table"),
               "The least, mean and greatest value of each column.");
}
