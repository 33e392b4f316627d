// src/py/export/capsule.cpp: a tensor, or memory that is described, leaves as a bare DLPack capsule.
#include "all.hpp"

namespace tenon::py {

namespace detail {

template <class Managed>
[[nodiscard]] PyObject* leave_as(tensor& t) noexcept {
    if (auto ok = can_leave_as<Managed>(t); !ok) return raise(ok.error(), "tenon: ");
    PyObject* const made = make_capsule<Managed>(t, t.owner(), {.fresh_copy = t.is_copied()});
    if (made != nullptr) t.reset();
    return made;
}

template <class Managed>
[[nodiscard]] PyObject* leave_as(const tensor_info& info, keep_alive& owner) noexcept {
    const auto managed = make_managed<Managed>(info, owner);  // needs no GIL, unlike what follows
    if (managed && attached_thread_state() != nullptr) [[likely]]
        return wrap_managed(*managed, owner);
    if (!managed) return raise(managed.error(), "tenon: ");
    (*managed)->deleter(*managed);
    raise_detached();
    return nullptr;
}

TENON_INLINE PyObject* capsule_over(const tensor_info& info, keep_alive& owner, capsule_kind kind) noexcept {
    const taken taken(owner);
    return kind == capsule_kind::versioned ? leave_as<abi::managed_tensor_versioned>(info, owner)
                                           : leave_as<abi::managed_tensor>(info, owner);
}

}  // namespace detail

TENON_INLINE PyObject* to_capsule(tensor&& t, capsule_kind kind) noexcept {
    if (interpreter::current() == nullptr) return nullptr;
    return kind == capsule_kind::versioned ? detail::leave_as<abi::managed_tensor_versioned>(t)
                                           : detail::leave_as<abi::managed_tensor>(t);
}

TENON_INLINE PyObject* to_capsule(result<tensor> t, capsule_kind kind) noexcept {
    if (!t) return raise(t.error(), "tenon: ");
    const detail::taken taken(*t);
    return to_capsule(std::move(*t), kind);
}

}  // namespace tenon::py
