// src/py/runtime/taken.hpp: memory that a function takes in any case, and lets go of without showing its
// owner a pending exception.
#pragma once

#include "base.hpp"
#include "exceptions.hpp"

namespace tenon::py::detail {

/// Resets a tensor or a keep_alive when the scope ends, whoever has its contents by then: the owner's own
/// code runs, and may neither see nor lose the exception that the function is about to return with.
template <class Kept>
class taken {
public:
    explicit taken(Kept& kept) noexcept : kept_(kept) {}
    taken(const taken&) = delete;
    taken& operator=(const taken&) = delete;
    ~taken() {
        std::optional<error_guard> keep;
        // Without the GIL there is nothing to guard: what is released finds its own way to it.
        if (runs_code() && attached_thread_state() != nullptr) keep.emplace();
        kept_.reset();
    }

private:
    [[nodiscard]] bool runs_code() const noexcept {
        if constexpr (std::is_same_v<Kept, keep_alive>)
            return static_cast<bool>(kept_);
        else
            return static_cast<bool>(kept_.owner());
    }

    Kept& kept_;
};

}  // namespace tenon::py::detail
