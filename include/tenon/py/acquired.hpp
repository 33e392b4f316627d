// tenon/py/acquired.hpp: where a rung of the import ladder puts what it found: a checked tensor and what
// keeps it alive.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include <tenon/abi/dlpack.hpp>
#include <tenon/detail/config.hpp>
#include <tenon/py/call.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/tensor/foreign.hpp>
#include <tenon/tensor/tensor.hpp>
#include <tenon/tensor/validate.hpp>
#include <tenon/value/device.hpp>
#include <tenon/value/error.hpp>
#include "../../../src/py/runtime/interpreter.hpp"

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

/// The outcome of one rung.
enum class rung_result {
    taken,    ///< the tensor is in `acquired`
    absent,   ///< the object does not speak this protocol
    refused,  ///< it does, but what it said is not acceptable; the error is filled in
    raised,   ///< a Python exception is set, the producer's own: stop
};

namespace detail {

// What tensors imported from Python release, each attached to the interpreter they came from (F15-F19).
inline void release_object(void* subject, void* home) noexcept {
    auto* const object = static_cast<PyObject*>(subject);
#if !defined(Py_GIL_DISABLED)
    // Not the last reference: nothing runs, so there is no exception to keep.
    if (static_cast<interpreter*>(home)->is_here() && Py_REFCNT(object) > 1) {
        Py_DECREF(object);
        return;
    }
#endif
    static_cast<interpreter*>(home)->enter([&] { call::drop(object); });
}
/// Of a pair: an object, and the interface it gave.
inline void release_interface(void* subject, void* home) noexcept { release_object(subject, home); }
inline void release_versioned(void* subject, void* home) noexcept {
    static_cast<interpreter*>(home)->enter([&] { foreign::call_deleter(subject, true); });
}
inline void release_legacy(void* subject, void* home) noexcept {
    static_cast<interpreter*>(home)->enter([&] { foreign::call_deleter(subject, false); });
}
/// For a buffer that is held no longer than a call: the thread is attached where it began, unless it is being
/// ended while the caller's function runs.
inline void release_buffer_in_place(void* subject, void*) noexcept {
    if (attached_thread_state() == nullptr) return;
    const error_guard guard;
    call::release_buffer(static_cast<Py_buffer*>(subject));
}
inline void release_buffer(void* subject, void* home) noexcept {
    static_cast<interpreter*>(home)->enter([&] {
        call::release_buffer(static_cast<Py_buffer*>(subject));
        PyMem_Free(subject);
    });
}

[[nodiscard]] inline keep_alive keep_object(PyObject* obj, interpreter* home) noexcept {
    Py_INCREF(obj);
    return {obj, release_object, home};
}
/// Keeps an object and what its interface was read from; empty with an exception set.
[[nodiscard]] inline keep_alive keep_interface(PyObject* obj, PyObject* interface,
                                               interpreter* home) noexcept {
    PyObject* const both = PyTuple_Pack(2, obj, interface);
    return both != nullptr ? keep_alive(both, release_interface, home) : keep_alive();
}
/// An array that a library made, and what it lent its memory by, which need not be kept by the array: its
/// library may hand out a copy.
struct kept_array {
    ref array;
    keep_alive memory;
};
inline void release_kept_array(void* subject, void* home) noexcept {
    static_cast<interpreter*>(home)->enter([&] { delete static_cast<kept_array*>(subject); });
}
/// Keeps both; throws `std::bad_alloc`.
[[nodiscard]] inline keep_alive keep_array(ref array, keep_alive memory, interpreter* home) {
    return {new kept_array{std::move(array), std::move(memory)}, release_kept_array, home};
}
/// The array or other object that is kept, borrowed, or null when it is kept by other means.
[[nodiscard]] inline PyObject* object_kept_by(const keep_alive& owner) noexcept {
    if (owner.release_function() == release_object) return static_cast<PyObject*>(owner.subject());
    return owner.release_function() == release_kept_array
               ? static_cast<kept_array*>(owner.subject())->array.get()
               : nullptr;
}
[[nodiscard]] inline keep_alive keep_managed(void* managed, bool versioned, interpreter* home) noexcept {
    return {managed, versioned ? release_versioned : release_legacy, home};
}

}  // namespace detail

/// Room for one import on the stack: the checked tensor, its metadata, its owner, and a buffer if it needs
/// one. Deliberately not initialised beyond its owner: a borrowed argument pays only for what it has.
class acquired : public tensor_ref {
public:
    acquired() noexcept {}  // NOLINT(modernize-use-equals-default): = default would zero the storage
    acquired(const acquired&) = delete;
    acquired& operator=(const acquired&) = delete;

    /// Copies and checks a description; `owner` says what keeps it alive (none while only borrowed).
    TENON_HOT [[nodiscard]] result<void> admit(const abi::dl_tensor& t, std::uint64_t flags,
                                               abi::dl_version version) noexcept {
        if (auto ok = tenon::detail::validator::check_arrays(t); !ok) [[unlikely]]
            return ok;
        return tenon::detail::validator::check(t, flags, version, storage, *this);
    }
    /// The same when shape and strides have been written to `storage` already.
    [[nodiscard]] result<void> admit_stored(const abi::dl_tensor& t, std::uint64_t flags) noexcept {
        return tenon::detail::validator::check_stored(t, flags, {0, 0}, storage, *this);
    }
    /// The same when the axes come from `axis(i)`. None of these protocols states a DLPack version.
    template <class Axis>
    TENON_HOT [[nodiscard]] result<void> admit_axes(const abi::dl_tensor& t, std::uint64_t flags,
                                                    Axis&& axis) noexcept {
        return tenon::detail::validator::check_axes(t, flags, {0, 0}, storage, *this, axis);
    }

    /// Where the memory is ready; none stated means the default stream.
    void set_stream(void* stream) noexcept { tenon::detail::validator::set_stream(*this, stream); }
    /// Where the memory turns out to be.
    void set_device(tenon::device where) noexcept { tenon::detail::validator::set_device(*this, where); }
    void mark_read_only() noexcept { tenon::detail::validator::add_flags(*this, abi::flag::read_only); }
    void mark_copied() noexcept { tenon::detail::validator::add_flags(*this, abi::flag::is_copied); }
    /// It is the memory of a tensor that requires grad.
    void mark_gradient() noexcept {
        mark_read_only();
        add_marks(tenon::detail::mark::grad);
    }
    /// Its own library hands the memory out as a legacy struct, read-only or not: so may we.
    void allow_legacy() noexcept {
        if (is_read_only()) add_marks(tenon::detail::mark::legacy);
    }
    void add_marks(std::uint64_t marks) noexcept { tenon::detail::validator::add_marks(*this, marks); }

    keep_alive owner;
    bool owning = false;    ///< the tensor must outlive the call: the rung keeps something alive
    bool looking = false;   ///< nothing is to be used up: capsules of others stay as they are
    bool ran_code = false;  ///< code of others may have run, and changed what was borrowed before
    /// No exception is wanted for an object that speaks no protocol at all: `no_array` says so then.
    bool quiet = false;
    bool no_array = false;
    Py_buffer buffer;       ///< used by a borrowing buffer import only
    std::int64_t storage[2 * max_rank];  ///< shape, then strides
};

}  // namespace tenon::py
