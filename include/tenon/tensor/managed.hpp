// tenon/tensor/managed.hpp: DLPack's managed structs: one that came, and a tensor that leaves as one.
#pragma once

#include <cstdint>

#include <tenon/tensor/tensor.hpp>
#include <tenon/tensor/validate.hpp>

namespace tenon {

/// A legacy or versioned managed struct exactly as received: owned, and released once. Only its deleter is
/// trusted; nothing else in it has been looked at. `tensor::take` looks, and leaves it here when it does not
/// like what it sees.
class foreign {
public:
    foreign() noexcept = default;
    explicit foreign(abi::managed_tensor* m) noexcept : owner_(m, release_as<false>) {}
    explicit foreign(abi::managed_tensor_versioned* m) noexcept
        : owner_(m, release_as<true>), versioned_(true) {}

    explicit operator bool() const noexcept { return get() != nullptr; }
    [[nodiscard]] bool is_versioned() const noexcept { return versioned_; }
    [[nodiscard]] void* get() const noexcept { return owner_ ? owner_.subject() : nullptr; }

    /// Gives the struct up without releasing it: it stays with whoever sent it.
    void* disown() noexcept {
        void* const managed = get();
        owner_.disown();
        return managed;
    }
    /// Runs the deleter, unless it is null or cannot be a function, and forgets the struct.
    void release() noexcept { owner_.reset(); }

    /// A pointer that no struct can be behind: nothing is read there, not even to release it.
    [[nodiscard]] static bool cannot_be(const void* managed) noexcept {
        return detail::is_implausible(managed) ||
               reinterpret_cast<std::uintptr_t>(managed) % alignof(abi::managed_tensor_versioned) != 0;
    }
    /// The struct's own deleter; it owns the struct, so nothing is read afterwards. One that throws has
    /// broken the rules of its C interface; there is nobody to tell.
    TENON_API static void call_deleter(void* managed, bool versioned) noexcept;

    struct description {
        abi::dl_tensor tensor;
        std::uint64_t flags;
        abi::dl_version version;
    };
    /// Description, flags and version, read once. Fails on a major version whose layout we do not know
    /// (nothing behind the flags is read then) and on a struct that carries the other kind's name.
    [[nodiscard]] result<description> describe() const noexcept { return describe(get(), versioned_); }
    [[nodiscard]] TENON_API static result<description> describe(const void* managed, bool versioned) noexcept;

private:
    friend class tensor;

    template <bool Versioned>
    static void release_as(void* managed, void*) noexcept {
        call_deleter(managed, Versioned);
    }

    keep_alive owner_;
    bool versioned_ = false;
};

/// Hands a tensor over to a consumer of C structs (`abi::managed_tensor_versioned` or the legacy
/// `abi::managed_tensor`), which calls its deleter when it is done, on any thread. On failure `t` is left as
/// it was.
template <class Managed = abi::managed_tensor_versioned>
[[nodiscard]] result<Managed*> to_managed(tensor&& t) noexcept;

template <>
[[nodiscard]] TENON_API result<abi::managed_tensor*> to_managed(tensor&& t) noexcept;
template <>
[[nodiscard]] TENON_API result<abi::managed_tensor_versioned*> to_managed(tensor&& t) noexcept;

}  // namespace tenon
