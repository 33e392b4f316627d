// tenon/tensor/foreign.hpp: a managed tensor exactly as received: only its deleter is trusted.
#pragma once

#include <cstdint>
#include <utility>

#include <tenon/abi/dlpack.hpp>
#include <tenon/detail/foreign_code.hpp>
#include <tenon/detail/readable.hpp>
#include <tenon/value/error.hpp>

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
    static void call_deleter(void* managed, bool versioned) noexcept try {
        if (cannot_be(managed)) return;
        if (versioned) {
            auto* m = static_cast<abi::managed_tensor_versioned*>(managed);
            if (!detail::is_implausible(reinterpret_cast<const void*>(m->deleter)))
                foreign_code([&] { m->deleter(m); });
        } else {
            auto* m = static_cast<abi::managed_tensor*>(managed);
            if (!detail::is_implausible(reinterpret_cast<const void*>(m->deleter)))
                foreign_code([&] { m->deleter(m); });
        }
    } catch (...) {  // NOLINT(bugprone-empty-catch): there is nobody to tell
    }

    /// Description, flags and version, read once. Fails on a major version whose layout we do not know
    /// (nothing behind the flags is read then) and on a struct that carries the other kind's name.
    struct description {
        abi::dl_tensor tensor;
        std::uint64_t flags;
        abi::dl_version version;
    };
    [[nodiscard]] result<description> describe() const noexcept {
        if (managed_ == nullptr) return malformed("capsule", "there is no managed struct");
        if (cannot_be(managed_)) return malformed("capsule", "the pointer cannot be a managed struct");
        if (versioned_) {
            const auto* m = static_cast<const abi::managed_tensor_versioned*>(managed_);
            if (m->version.major != abi::dlpack_major) {
                return refused("version", "DLPack major version not supported", m->version.major,
                               abi::dlpack_major);
            }
            if (has_impossible_deleter()) return no_deleter();
            return description{m->tensor, m->flags, m->version};
        }
        const abi::dl_tensor t = static_cast<const abi::managed_tensor*>(managed_)->tensor;
        if (looks_versioned(t)) {
            return malformed("capsule", "a versioned struct under the legacy name \"dltensor\"")
                .with_advice("the producer must name it \"dltensor_versioned\"");
        }
        if (has_impossible_deleter()) return no_deleter();
        return description{t, 0, {0, 0}};
    }

private:
    [[nodiscard]] bool has_impossible_deleter() const noexcept {
        return versioned_ ? detail::is_implausible_function(
                                static_cast<const abi::managed_tensor_versioned*>(managed_)->deleter)
                          : detail::is_implausible_function(
                                static_cast<const abi::managed_tensor*>(managed_)->deleter);
    }
    static error no_deleter() noexcept { return malformed("deleter", "the pointer cannot be a function"); }

    /// Read as legacy, a versioned struct has its version where `data` is (major 1 and a small minor, or any
    /// small pair) and its flags, a small integer, where `shape` is.
    static bool looks_versioned(const abi::dl_tensor& t) noexcept {
        const auto head = reinterpret_cast<std::uintptr_t>(t.data);
        const auto flags = reinterpret_cast<std::uintptr_t>(t.shape);
        const std::uint64_t major = static_cast<std::uint64_t>(head) & 0xffffffffU;
        const std::uint64_t minor = static_cast<std::uint64_t>(head) >> 32U;
        return major >= 1 && major < 64 && minor < 256 && flags < 4096 && t.ndim != 0;
    }

    void* managed_ = nullptr;
    bool versioned_ = false;
};

}  // namespace tenon
