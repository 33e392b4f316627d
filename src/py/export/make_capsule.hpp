// src/py/export/make_capsule.hpp: a managed struct in a capsule that lets go of it unless a consumer has
// taken it.
#pragma once

#include "../import/all.hpp"

namespace tenon::py {

namespace detail {

template <class Managed>
inline constexpr const char* capsule_name =
    std::is_same_v<Managed, abi::managed_tensor_versioned> ? capsule_versioned : capsule_legacy;

/// A consumer renames the capsule, or takes this destructor off it; then the struct is no longer ours. A
/// pending exception stays as it is.
template <class Managed>
void drop_unconsumed(PyObject* capsule) noexcept {
    // Ours by its address, mostly; the characters are for whoever gave it the same name anew.
    if (PyCapsule_GetName(capsule) != capsule_name<Managed> &&
        PyCapsule_IsValid(capsule, capsule_name<Managed>) == 0)
        return;
    auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, capsule_name<Managed>));
    if (managed == nullptr || managed->deleter == nullptr) return;
    const auto* const block = tenon::detail::own_block(managed);
    if (block != nullptr && block->owner.is(owner_kind::memory)) return managed->deleter(managed);
    const error_guard keep;  // the owner's own code runs, and may not see what is pending
    managed->deleter(managed);
}

}  // namespace detail

/// A new capsule that holds the struct; null with an exception set, and the struct's owner moved back to
/// `owner`, on failure.
template <class Managed>
[[nodiscard]] PyObject* wrap_managed(Managed* managed, keep_alive& owner) noexcept {
    PyObject* const capsule =
        PyCapsule_New(managed, detail::capsule_name<Managed>, &detail::drop_unconsumed<Managed>);
    if (capsule == nullptr) [[unlikely]] {
        owner = std::move(tenon::detail::managed_block<Managed>::of(managed)->owner);
        managed->deleter(managed);
    }
    return capsule;
}

/// A new capsule over memory that `owner` keeps alive, `owner` moved into it; null with an exception set, and
/// `owner` left as it was, on failure. The caller has asked `can_leave_as`.
template <class Managed>
[[nodiscard]] PyObject* make_capsule(const tensor_ref& t, keep_alive& owner, export_view how = {}) noexcept {
    Managed* const managed = make_managed<Managed>(t, owner, how);
    return managed != nullptr ? wrap_managed(managed, owner) : PyErr_NoMemory();
}

}  // namespace tenon::py
