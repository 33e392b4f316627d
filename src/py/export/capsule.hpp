// src/py/export/capsule.hpp: a tensor leaves as a bare DLPack capsule, legacy or versioned.
#pragma once

#include <tenon/abi/dlpack.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/py/taken.hpp>
#include <tenon/tensor/tensor.hpp>
#include <tenon/tensor/tensor_info.hpp>
#include "../../tensor/managed.hpp"
#include "../runtime/interpreter.hpp"
#include "make_capsule.hpp"

namespace tenon::py {

/// Which struct a capsule holds.
enum class capsule_kind : bool { legacy, versioned };

/// A capsule that owns the tensor until a consumer takes it over; null with an exception set on failure, and
/// `t` is then left as it was. A legacy capsule cannot say that memory is read-only: such memory leaves in
/// one only if its own library hands it out so, or after `tensor::allow_legacy`. Needs an attached thread
/// state.
[[nodiscard]] inline PyObject* to_capsule(tensor&& t, capsule_kind kind = capsule_kind::versioned) noexcept {
    if (interpreter::current() == nullptr) return nullptr;
    const auto leave = [&]<class Managed>(Managed*) -> PyObject* {
        if (auto ok = can_leave_as<Managed>(t); !ok) {
            raise(ok.error(), "tenon: ");
            return nullptr;
        }
        PyObject* const made = make_capsule<Managed>(t, t.owner(), {.fresh_copy = t.is_copied()});
        if (made != nullptr) t.reset();
        return made;
    };
    return kind == capsule_kind::versioned ? leave(static_cast<abi::managed_tensor_versioned*>(nullptr))
                                           : leave(static_cast<abi::managed_tensor*>(nullptr));
}

/// Memory of your own, as a description and what keeps it alive, in a capsule: the quickest way to one. The
/// memory is taken in any case.
template <class Owner>
    requires deleter_or_keeper<Owner>
[[nodiscard]] PyObject* to_capsule(const tensor_info& info, Owner owner,
                                   capsule_kind kind = capsule_kind::versioned) {
    if constexpr (std::is_same_v<Owner, keep_alive>) {
        const detail::taken taken(owner);
        const auto leave = [&]<class Managed>(Managed*) -> PyObject* {
            const auto managed = make_managed<Managed>(info, owner);  // needs no GIL, unlike what follows
            if (managed && attached_thread_state() != nullptr) [[likely]]
                return wrap_managed(*managed, owner);
            if (!managed) return raise(managed.error(), "tenon: ");
            (*managed)->deleter(*managed);
            detail::raise_detached();
            return nullptr;
        };
        return kind == capsule_kind::versioned ? leave(static_cast<abi::managed_tensor_versioned*>(nullptr))
                                               : leave(static_cast<abi::managed_tensor*>(nullptr));
    } else {
        keep_alive kept;
        if (!detail::keep(info, std::move(owner), kept)) return raise_no_memory();
        return to_capsule(info, std::move(kept), kind);
    }
}

/// The same for memory just taken over: an error of `tensor::own` is raised.
[[nodiscard]] inline PyObject* to_capsule(result<tensor> t,
                                          capsule_kind kind = capsule_kind::versioned) noexcept {
    if (!t) return raise(t.error(), "tenon: ");
    const detail::taken taken(*t);
    return to_capsule(std::move(*t), kind);
}

}  // namespace tenon::py
