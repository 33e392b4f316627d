// src/py/export/capsule.cpp: a tensor, or memory that is described, leaves in a DLPack capsule.
#include "all.hpp"

namespace tenon::py::detail {

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

/// A new capsule that holds the struct; null with an exception set, and the struct's owner moved back to
/// `owner`, on failure.
template <class Managed>
TENON_HOT [[nodiscard]] inline PyObject* wrap_managed(Managed* managed, keep_alive& owner) noexcept {
    PyObject* const capsule = PyCapsule_New(managed, capsule_name<Managed>, &drop_unconsumed<Managed>);
    if (capsule == nullptr) [[unlikely]] {
        owner = std::move(tenon::detail::managed_block<Managed>::of(managed)->owner);
        managed->deleter(managed);
    }
    return capsule;
}

template <class Managed>
TENON_HOT [[nodiscard]] inline PyObject* leave_as(const tensor_ref& t, keep_alive& owner,
                                                  export_view how) noexcept {
    if (auto ok = can_leave_as<Managed>(t); !ok) return raise(ok.error(), "tenon: ");
    Managed* const managed = make_managed<Managed>(t, owner, how);
    return managed != nullptr ? wrap_managed(managed, owner) : PyErr_NoMemory();
}

/// What few ask for is compiled once.
TENON_COLD [[nodiscard]] inline PyObject* leave_as_legacy(const tensor_ref& t, keep_alive& owner,
                                                          export_view how) noexcept {
    return leave_as<abi::managed_tensor>(t, owner, how);
}

TENON_FAST TENON_INLINE PyObject* new_capsule(const tensor_ref& t, keep_alive& owner, capsule_kind kind,
                                              export_view how) noexcept {
    return kind == capsule_kind::versioned ? leave_as<abi::managed_tensor_versioned>(t, owner, how)
                                           : leave_as_legacy(t, owner, how);
}

TENON_FAST TENON_INLINE PyObject* capsule_over(const tensor_ref& t, keep_alive& owner,
                                               capsule_kind kind) noexcept {
    const taken taken(owner);
    if (attached_thread_state() == nullptr) [[unlikely]] {
        raise_detached();
        return nullptr;
    }
    return kind == capsule_kind::versioned ? leave_as<abi::managed_tensor_versioned>(t, owner, {})
                                           : leave_as_legacy(t, owner, {});
}

TENON_INLINE PyObject* refuse_described(const error& why, keep_alive& owner) noexcept {
    const taken taken(owner);
    return interpreter::current() != nullptr ? raise(why, "tenon: ") : nullptr;
}

}  // namespace tenon::py::detail
