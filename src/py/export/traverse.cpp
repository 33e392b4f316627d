// src/py/export/traverse.cpp: which objects of Python's stand behind a tensor that C++ keeps.
#include <tenon/py/traverse.hpp>
#include "../../tensor/held.hpp"
#include "all.hpp"

namespace tenon::py {

namespace detail {

/// Each reference is visited once: the collector counts.
[[nodiscard]] inline int traverse_owner(const keep_alive& any, visitproc visit, void* arg) noexcept {
    const keep_alive& owner = gpu::kept_by(any);
    if (owner.is(owner_kind::shared)) {
        const auto& shared = *static_cast<tenon::detail::shared_owner*>(owner.subject());
        return shared.holders.load() == 1 ? traverse_owner(shared.owner, visit, arg) : 0;
    }
    if (owner.is(owner_kind::array)) {
        const auto& kept = *static_cast<kept_array*>(owner.subject());
        if (const int stop = traverse_owner(kept.memory, visit, arg)) return stop;
    }
    Py_VISIT(visible(referenced_by(owner)));
    return 0;
}

TENON_INLINE int traverse_held(const tenon::detail::held* memory, visitproc visit, void* arg) noexcept {
    if (memory == nullptr || memory->holders.load() != 1) return 0;
    for (const keep_alive* owner : {&memory->memory.owner(), &memory->like, &memory->made})
        if (const int stop = traverse_owner(*owner, visit, arg)) return stop;
    return 0;
}

}  // namespace detail

TENON_INLINE int traverse(const tensor& t, visitproc visit, void* arg) noexcept {
    return detail::traverse_owner(t.owner(), visit, arg);
}

}  // namespace tenon::py
