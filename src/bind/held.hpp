// src/bind/held.hpp: memory that arrays keep.
#pragma once

#include <atomic>
#include <utility>

#include <tenon/bind/argument.hpp>
#include <tenon/py/python.hpp>
#include <tenon/tensor/keep_alive.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon::bind {

/// The memory, and the object of the library it belongs to. Shared by copies of an array.
struct held {
    held(tensor&& m, keep_alive&& l) noexcept : memory(std::move(m)), like(std::move(l)) {}
    tensor memory;
    keep_alive like;
    std::atomic<unsigned> holders{1};
};

/// Throws `std::bad_alloc`.
[[nodiscard]] inline found keep_memory(tensor&& memory, keep_alive&& like, unsigned index) {
    auto* const made = new held(std::move(memory), std::move(like));
    return {&made->memory, static_cast<PyObject*>(made->like.subject()), index, holder(made)};
}

}  // namespace tenon::bind
