// tenon/py/acquired.hpp: room for one import on the stack: a checked tensor, and what keeps it alive.
#pragma once

#include <cstdint>

#include <tenon/py/python.hpp>
#include <tenon/tensor/keep_alive.hpp>
#include <tenon/tensor/validate.hpp>

namespace tenon::py {

/// Room for one import on the stack: the checked tensor, its metadata, its owner, and a buffer if it needs
/// one. Deliberately not initialised beyond its owner: a borrowed argument pays only for what it has.
class acquired : public tensor_ref {
public:
    acquired() noexcept {}  // NOLINT(modernize-use-equals-default): = default would zero the storage
    acquired(const acquired&) = delete;
    acquired& operator=(const acquired&) = delete;

    /// Copies and checks a description; `owner` says what keeps it alive (none while only borrowed).
    [[nodiscard]] result<void> admit(const tenon::detail::claim& said) noexcept {
        return tenon::detail::validator::check_whole(said, storage, *this);
    }
    /// The same, inlined: for the path of every argument.
    TENON_HOT [[nodiscard]] result<void> admit_here(const tenon::detail::claim& said) noexcept {
        return tenon::detail::validator::check(said, storage, *this);
    }
    /// The same when shape and strides have been written to `storage` already.
    [[nodiscard]] result<void> admit_stored(const tenon::detail::claim& said) noexcept {
        return tenon::detail::validator::check_stored(said, storage, *this);
    }
    /// The same when the axes come from `axis(i)`.
    template <class Axis>
    TENON_HOT [[nodiscard]] result<void> admit_axes(const tenon::detail::claim& said, Axis&& axis) noexcept {
        return tenon::detail::validator::check_axes(said, storage, *this, axis);
    }

    /// Where the memory is ready; none stated means the default stream.
    void set_stream(void* stream) noexcept { stream_ = stream; }
    /// Where the memory turns out to be.
    void set_device(tenon::device where) noexcept { device_ = where.to_abi(); }
    void mark_read_only() noexcept { flags_ |= abi::flag::read_only; }
    void mark_copied() noexcept { flags_ |= abi::flag::is_copied; }
    /// It is the memory of a tensor that requires grad.
    void mark_gradient() noexcept {
        mark_read_only();
        add_marks(tenon::detail::mark::grad);
    }
    /// Its own library hands the memory out as a legacy struct, read-only or not: so may we.
    void allow_legacy() noexcept {
        if (is_read_only()) add_marks(tenon::detail::mark::legacy);
    }
    void add_marks(std::uint64_t marks) noexcept { flags_ |= marks; }

    keep_alive owner;
    bool owning = false;    ///< the tensor must outlive the call: the rung keeps something alive
    bool looking = false;   ///< nothing is to be used up: capsules of others stay as they are
    bool ran_code = false;  ///< code of others may have run, and changed what was borrowed before
    /// No exception is wanted for an object that speaks no protocol at all: `no_array` says so then.
    bool quiet = false;
    bool no_array = false;
    Py_buffer buffer;                    ///< used by a borrowing buffer import only
    std::int64_t storage[2 * max_rank];  ///< shape, then strides
};

}  // namespace tenon::py
