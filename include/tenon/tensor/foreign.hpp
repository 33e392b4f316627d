// tenon/tensor/foreign.hpp: a managed tensor exactly as received: only its deleter is trusted.
#pragma once

#include <cstdint>
#include <utility>

#include <tenon/tensor/validate.hpp>

namespace tenon {

/// Owns a legacy or versioned managed struct and releases it once. Nothing in it has been looked at yet;
/// `tensor::take` looks, and leaves it here when it does not like what it sees.
class foreign {
public:
    foreign() noexcept = default;
    explicit foreign(abi::managed_tensor* m) noexcept : managed_(m), versioned_(false) {}
    explicit foreign(abi::managed_tensor_versioned* m) noexcept : managed_(m), versioned_(true) {}
    foreign(foreign&& other) noexcept
        : managed_(std::exchange(other.managed_, nullptr)), versioned_(other.versioned_) {}
    foreign& operator=(foreign&& other) noexcept {
        if (this != &other) {
            release();
            managed_ = std::exchange(other.managed_, nullptr);
            versioned_ = other.versioned_;
        }
        return *this;
    }
    foreign(const foreign&) = delete;
    foreign& operator=(const foreign&) = delete;
    ~foreign() { release(); }

    explicit operator bool() const noexcept { return managed_ != nullptr; }
    [[nodiscard]] bool is_versioned() const noexcept { return versioned_; }
    [[nodiscard]] void* get() const noexcept { return managed_; }

    /// Gives the struct up without releasing it: it stays with whoever sent it.
    void* disown() noexcept { return std::exchange(managed_, nullptr); }

    /// Runs the deleter, unless it is null or cannot be a function, and forgets the struct.
    void release() noexcept {
        if (void* m = std::exchange(managed_, nullptr)) call_deleter(m, versioned_);
    }

    /// A pointer that no struct can be behind: nothing is read there, not even to release it.
    [[nodiscard]] static bool cannot_be(const void* managed) noexcept {
        return detail::is_implausible(managed) ||
               reinterpret_cast<std::uintptr_t>(managed) % alignof(abi::managed_tensor_versioned) != 0;
    }

    /// The struct's own deleter; it owns the struct, so nothing is read afterwards. One that throws has
    /// broken the rules of its C interface; there is nobody to tell.
    TENON_API static void call_deleter(void* managed, bool versioned) noexcept;

    /// Description, flags and version, read once. Fails on a major version whose layout we do not know
    /// (nothing behind the flags is read then) and on a struct that carries the other kind's name.
    struct description {
        abi::dl_tensor tensor;
        std::uint64_t flags;
        abi::dl_version version;
    };
    [[nodiscard]] TENON_API result<description> describe() const noexcept;

private:
    void* managed_ = nullptr;
    bool versioned_ = false;
};

}  // namespace tenon
