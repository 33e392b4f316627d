// src/tensor/held.hpp: memory that several handles hold, whose library it belongs to, and what it is as an
// object of Python's.
#pragma once

#include <tenon/tensor/shared_tensor.hpp>
#include "../standard.hpp"

namespace tenon::detail {

/// Counted. What belongs to Python is an owner here as everything else: nobody needs the GIL to drop it.
struct held : release_chain::deletable<held> {
    explicit held(tensor&& t) noexcept : memory(std::move(t)) {}

    tensor memory;
    keep_alive like;  ///< the object it came from, or whose library it belongs to
    keep_alive made;  ///< the object that was last made of it
    /// The memory is `like`'s own, or that of an argument which the call still keeps.
    bool is_itself = false;
    /// It keeps its memory by itself, and not by an argument that the call under way keeps.
    std::atomic<bool> is_kept{true};
    std::atomic<unsigned> holders{1};
    std::mutex sharing;  ///< of the memory, with what is made of it
};

}  // namespace tenon::detail
