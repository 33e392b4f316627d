// src/py/export/like.hpp: the two ways to make an array of a library's: by its exchange table, which is on
// the way of most results, and all else.
#pragma once

#include "all.hpp"

namespace tenon::py::detail {

/// The table takes the tensor in any case. Null with an exception set on failure.
[[nodiscard]] TENON_API PyObject* make_by_table(tensor&& t, const abi::exchange_api* table) noexcept;

/// An array over memory by whatever its library has but a table. Null with an exception set on failure.
[[nodiscard]] TENON_API PyObject* array_otherwise(const tensor_ref& t, keep_alive& kept, PyObject* like,
                                                  interpreter& here) noexcept;

}  // namespace tenon::py::detail
