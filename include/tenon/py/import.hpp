// tenon/py/import.hpp: any Python object becomes a checked tensor, owned or for the length of a call.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>

#include <tenon/py/numpy_struct.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/tensor/request.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon::py {

/// How an import is to be done.
struct import_options {
    bool writable = false;          ///< refuse what may not be written to
    std::optional<bool> copy = {};  ///< true: always a copy; false: never; nullopt: only if needed
    std::optional<device> to = {};  ///< where the data must be, asked of the producer if it is elsewhere
    /// The consumer's stream, as `__dlpack__` numbers them: it is made to wait for the producer, and is the
    /// tensor's `stream()` then. -1: nothing waits. None: the tensor says by `stream()` where it is ready.
    std::optional<std::intptr_t> stream = {};
    bool trust_legacy = false;  ///< a legacy struct cannot say "read-only": believe that it is not
    bool for_cuda = false;      ///< memory that is the host's and a GPU's is wanted as the GPU's

    [[nodiscard]] bool wants_host() const noexcept { return to == device{}; }
    /// Whether memory there is where it was asked for: anywhere unless asked, and host memory counts as the
    /// CPU's.
    [[nodiscard]] bool is_met_by(device where) const noexcept {
        return !to || *to == where || (wants_host() && where.is_host_accessible());
    }
    /// A stream to wait on was named.
    [[nodiscard]] bool orders() const noexcept { return stream && *stream != -1; }
    [[nodiscard]] void* stream_handle() const noexcept { return reinterpret_cast<void*>(stream.value_or(0)); }
};

/// Imports any object that speaks a tensor protocol, or a DLPack capsule, and keeps its memory alive. Null
/// with a Python exception set on failure: the producer's own, unchanged, or one that lists what was tried;
/// for PyTorch's tensors without plain memory one that says so, and PyTorch's own is its cause.
/// Needs an attached thread state; the tensor may be dropped on any thread, with or without one.
[[nodiscard]] TENON_API std::optional<tensor> from_python(PyObject* obj,
                                                          const import_options& options = {}) noexcept;

/// Whether `from_python` and bound functions have a way to take the object: it speaks a protocol of tensors
/// (a list, a number, text, None and a class do not). Whether it fits is for them to say. A look at its type,
/// as a rule; nothing is taken, and no exception left.
[[nodiscard]] TENON_API bool is_array(PyObject* obj) noexcept;
/// The same of what binders have for objects, and of a `py::ref`.
template <detail::binder_handle Handle>
[[nodiscard]] bool is_array(const Handle& obj) noexcept {
    return is_array(obj.ptr());
}
[[nodiscard]] inline bool is_array(const ref& obj) noexcept { return is_array(obj.get()); }

namespace detail {

/// The way in for a plain import: what PyTorch's table lends, of a type seen before, is taken with no
/// attribute lookup, no Python call and no allocation on the way; all else climbs the ladder. False with an
/// exception set.
[[nodiscard]] TENON_API bool acquire(PyObject* obj, bool writable, acquired& out) noexcept;
/// Raises what a tensor lacks of what was asked of it.
TENON_API void raise_unmet(const error& e, PyObject* obj) noexcept;

}  // namespace detail

/// Imports for the length of one call: `fn(const tensor_ref&)` runs if the object is a tensor that meets
/// `wanted`. Neither the reference nor anything it points to may be kept.
///
/// `fn` returns a pointer (null then means that an exception is set, as for any C function of Python) and so
/// does this; or nothing, and this returns whether it ran. For a PyTorch tensor or a NumPy array whose type
/// has been seen before there is no allocation and no Python call.
/// Needs an attached thread state: whatever takes more than a look at NumPy's struct says so without one.
template <class Fn>
TENON_HOT inline auto borrow(PyObject* obj, const request& wanted, Fn&& fn) {
    using R = std::invoke_result_t<Fn&, const tensor_ref&>;
    static_assert(std::is_pointer_v<R> || std::is_void_v<R>,
                  "py::borrow: the function must return a pointer or nothing");
    using answer = std::conditional_t<std::is_void_v<R>, bool, R>;
    acquired got;
    if (!numpy::borrow_quickly(obj, got) && !detail::acquire(obj, wanted.writable, got)) [[unlikely]]
        return answer{};
    if (auto met = check(got, wanted); !met) [[unlikely]] {
        detail::raise_unmet(met.error(), obj);
        return answer{};
    }
    if constexpr (std::is_void_v<R>) {
        fn(static_cast<const tensor_ref&>(got));
        return true;
    } else {
        return fn(static_cast<const tensor_ref&>(got));
    }
}

}  // namespace tenon::py
