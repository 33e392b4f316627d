// tenon/py/export/capsule.hpp: a tensor leaves as a bare DLPack capsule, legacy or versioned.
#pragma once

#include <tenon/abi/dlpack.hpp>
#include <tenon/core/managed.hpp>
#include <tenon/core/tensor.hpp>
#include <tenon/py/make_capsule.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>

namespace tenon::py {

/// Which struct a capsule holds.
enum class capsule_kind : bool { legacy, versioned };

/// A capsule that owns the tensor until a consumer takes it over; null with an exception set on failure, and
/// `t` is then left as it was. A legacy capsule cannot say that memory is read-only, so read-only tensors
/// never leave in one. Needs an attached thread state.
[[nodiscard]] inline PyObject* to_capsule(tensor&& t, capsule_kind kind = capsule_kind::versioned) noexcept {
    const auto leave = [&]<class Managed>(Managed*) -> PyObject* {
        if (auto ok = can_leave_as<Managed>(t); !ok) {
            raise(ok.error(), "tenon: ");
            return nullptr;
        }
        PyObject* const made = make_capsule<Managed>(t, t.owner(), {.fresh_copy = t.is_copied()});
        if (made != nullptr) const tensor emptied = std::move(t);
        return made;
    };
    return kind == capsule_kind::versioned ? leave(static_cast<abi::managed_tensor_versioned*>(nullptr))
                                           : leave(static_cast<abi::managed_tensor*>(nullptr));
}

/// The same for memory just taken over: an error of `tensor::own` is raised.
[[nodiscard]] inline PyObject* to_capsule(result<tensor> t,
                                          capsule_kind kind = capsule_kind::versioned) noexcept {
    if (t) return to_capsule(std::move(*t), kind);
    raise(t.error(), "tenon: ");
    return nullptr;
}

}  // namespace tenon::py
