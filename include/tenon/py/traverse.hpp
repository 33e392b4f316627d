// tenon/py/traverse.hpp: shows the collector which objects of Python's a kept array holds, so that a class
// that keeps one can be in a cycle.
#pragma once

#include <tenon/py/python.hpp>
#include <tenon/tensor/shared_tensor.hpp>

namespace tenon::py {

namespace detail {
[[nodiscard]] TENON_API int traverse_held(const tenon::detail::held* memory, visitproc visit,
                                          void* arg) noexcept;
}

/// For the `tp_traverse` of a class that keeps a tensor: visits the objects that keep its memory alive, as
/// far as Python knows them, and returns what `visit` does: `if (int stop = py::traverse(self->weights,
/// visit, arg)) return stop;`. Its `tp_clear` empties the member: `self->weights = {};`.
///
/// Memory that several handles hold belongs to none of them, and is not visited until one is left: what
/// copies share is not collected while it is in a cycle.
[[nodiscard]] TENON_API int traverse(const tensor& t, visitproc visit, void* arg) noexcept;
[[nodiscard]] inline int traverse(const shared_tensor& t, visitproc visit, void* arg) noexcept {
    return detail::traverse_held(t.memory().get(), visit, arg);
}

}  // namespace tenon::py
