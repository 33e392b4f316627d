// src/bind/keep_memory.hpp: memory that arrays keep, and the object it came from.
#pragma once

#include <tenon/bind/argument.hpp>
#include "../py/export/all.hpp"
#include "../tensor/held.hpp"

namespace tenon::bind {

/// Memory that is kept, and the object that it came from, or whose library it belongs to. Throws
/// `py::python_error` and `std::bad_alloc`.
[[nodiscard]] inline found keep_memory(tensor&& memory, PyObject* like, unsigned index, bool is_itself) {
    py::interpreter* const here = py::interpreter::current();
    if (here == nullptr) throw py::python_error();
    holder made = tenon::detail::hold_together(std::move(memory));
    made.get()->like = py::detail::keep_object(like, here);
    made.get()->is_itself = is_itself && !PyCapsule_CheckExact(like);  // a capsule is used up
    return {&made.get()->memory, like, index, std::move(made)};
}

}  // namespace tenon::bind
