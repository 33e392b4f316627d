// tenon/py/export.hpp: the way out: a tensor becomes a capsule, or an object that every array library can
// read.
#pragma once

#include <type_traits>
#include <utility>

#include <tenon/py/python.hpp>
#include <tenon/tensor/described.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon::py {

// Whatever is handed over with `std::move`, and memory of your own, is described in tensor.hpp. All of these
// need the GIL, and return null with an exception set on failure.

/// Which struct a capsule holds.
enum class capsule_kind : bool { legacy, versioned };

/// A capsule that owns the tensor until a consumer takes it over; on failure `t` is left as it was. A legacy
/// capsule cannot say that memory is read-only: such memory leaves in one only if its own library hands it
/// out so, or after `tensor::allow_legacy`.
[[nodiscard]] TENON_API PyObject* to_capsule(tensor&& t,
                                             capsule_kind kind = capsule_kind::versioned) noexcept;
/// The same for memory just taken over: an error of `tensor::own` is raised.
[[nodiscard]] TENON_API PyObject* to_capsule(result<tensor> t,
                                             capsule_kind kind = capsule_kind::versioned) noexcept;

/// A producer object over the tensor: any library can read it, as often as it likes, and it lives as long as
/// any of them looks at it. What is queued on the tensor's stream by then, every consumer waits for. On
/// failure `t` is left as it was.
[[nodiscard]] TENON_API PyObject* to_python(tensor&& t) noexcept;
PyObject* to_python(tensor& t) = delete;  // say std::move(t): there is no second tensor over the same memory
/// The same for memory just taken over: an error of `tensor::own` is raised.
[[nodiscard]] TENON_API PyObject* to_python(result<tensor> t) noexcept;

/// What may stand behind described memory: `deleter(pointer)`, or a keep_alive.
template <class Owner>
concept deleter_or_keeper = std::is_invocable_v<Owner&, void*> || std::is_same_v<Owner, keep_alive>;

namespace detail {

/// The one as the other; false with MemoryError set when there is no memory for it, and then the deleter has
/// run.
template <deleter_or_keeper Owner>
[[nodiscard]] bool keep(const tensor_info& info, Owner owner, keep_alive& out) {
    if constexpr (std::is_same_v<Owner, keep_alive>) {
        out = std::move(owner);
        return true;
    } else {
        if (tenon::detail::keep_deleted(info.data(), std::move(owner), out)) return true;
        PyErr_NoMemory();
        return false;
    }
}

/// Raises what is wrong with a description; `owner` is taken. Null.
[[nodiscard]] TENON_API PyObject* refuse_described(const error& why, keep_alive& owner) noexcept;
/// `owner` is taken in any case.
[[nodiscard]] TENON_API PyObject* capsule_over(const tensor_ref& t, keep_alive& owner,
                                               capsule_kind kind) noexcept;

}  // namespace detail

/// Memory of your own, as a description and what keeps it alive, in a capsule: the quickest way to one. The
/// memory is taken in any case.
template <deleter_or_keeper Owner>
TENON_HOT [[nodiscard]] inline PyObject* to_capsule(const tensor_info& info, Owner owner,
                                                    capsule_kind kind = capsule_kind::versioned) {
    keep_alive kept;
    if (!detail::keep(info, std::move(owner), kept)) return nullptr;
    const tenon::detail::described t(info);
    return t.checked() ? detail::capsule_over(t, kept, kind)
                       : detail::refuse_described(t.checked().error(), kept);
}

}  // namespace tenon::py
