// tenon/py/taken.hpp: memory that a function takes in any case, and lets go of without showing its owner a
// pending exception.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include <tenon/py/python.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/tensor/keep_alive.hpp>
#include <tenon/tensor/tensor_info.hpp>

namespace tenon::py {

/// What may stand behind described memory: `deleter(pointer)`, or a keep_alive.
template <class Owner>
concept deleter_or_keeper = std::is_invocable_v<Owner&, void*> || std::is_same_v<Owner, keep_alive>;

namespace detail {

/// The one as the other; false when there is no memory for it, and then the deleter has run.
template <deleter_or_keeper Owner>
[[nodiscard]] bool keep(const tensor_info& info, Owner owner, keep_alive& out) {
    if constexpr (std::is_same_v<Owner, keep_alive>) {
        out = std::move(owner);
        return true;
    } else {
        return tenon::detail::keep_deleted(info.data(), std::move(owner), out);
    }
}

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
            return kept_.release_function() != nullptr;
        else
            return kept_.owner().release_function() != nullptr;
    }

    Kept& kept_;
};

}  // namespace detail
}  // namespace tenon::py
