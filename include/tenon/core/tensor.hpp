// tenon/core/tensor.hpp: an owned, validated, move-only tensor on any device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include <tenon/core/error.hpp>
#include <tenon/core/foreign.hpp>
#include <tenon/core/tensor_ref.hpp>
#include <tenon/core/validate.hpp>

namespace tenon {

/// Keeps a tensor's memory alive: `release(subject, context)` runs once, on whichever thread drops it last.
class keep_alive {
public:
    using release_fn = void (*)(void* subject, void* context) noexcept;

    keep_alive() noexcept = default;
    keep_alive(void* subject, release_fn release, void* context = nullptr) noexcept
        : subject_(subject), context_(context), release_(release) {}
    keep_alive(keep_alive&& o) noexcept
        : subject_(o.subject_), context_(o.context_), release_(std::exchange(o.release_, nullptr)) {}
    keep_alive& operator=(keep_alive&& o) noexcept {
        if (this != &o) {
            reset();
            subject_ = o.subject_;
            context_ = o.context_;
            release_ = std::exchange(o.release_, nullptr);
        }
        return *this;
    }
    keep_alive(const keep_alive&) = delete;
    keep_alive& operator=(const keep_alive&) = delete;
    ~keep_alive() { reset(); }

    void reset() noexcept {
        if (const release_fn release = std::exchange(release_, nullptr)) release(subject_, context_);
    }
    /// Forgets what it kept, without releasing it.
    void disown() noexcept { release_ = nullptr; }

    [[nodiscard]] void* subject() const noexcept { return subject_; }
    [[nodiscard]] release_fn release_function() const noexcept { return release_; }

private:
    void* subject_ = nullptr;
    void* context_ = nullptr;
    release_fn release_ = nullptr;
};

/// A tensor somebody else's memory stands behind, kept alive until this object goes. Thread-compatible: one
/// thread at a time; destruction may happen on any thread its `keep_alive` allows.
class tensor : public tensor_ref {
    struct key {};  // only the functions below can make one

public:
    explicit tensor(key) noexcept : tensor() {}
    tensor(tensor&& other) noexcept : tensor_ref(nothing{}) { steal(other); }
    tensor& operator=(tensor&& other) noexcept {
        if (this != &other) steal(other);
        return *this;
    }
    tensor(const tensor&) = delete;
    tensor& operator=(const tensor&) = delete;
    ~tensor() = default;

    /// Checks a description and binds it to what keeps it alive. On failure `owner` is left as it was.
    [[nodiscard]] static result<tensor> adopt(const abi::dl_tensor& t, std::uint64_t flags,
                                              abi::dl_version version, keep_alive& owner,
                                              import_policy policy = {}) noexcept {
        if (auto ok = detail::validator::check_arrays(t); !ok) return ok.error();
        tensor out;
        if (!out.reserve(t.ndim)) return out_of_memory("shape");
        if (auto ok = detail::validator::check(t, flags, version, out.storage(), policy, out); !ok)
            return ok.error();
        out.owner_ = std::move(owner);
        return result<tensor>(std::move(out));  // said in full for nvcc, which does not see the move
    }

    /// Binds an already checked tensor to what keeps its memory alive, in place. On failure `owner` and `out`
    /// are left as they were.
    [[nodiscard]] static result<void> keep(const tensor_ref& checked, keep_alive& owner,
                                           std::optional<tensor>& out) noexcept {
        tensor& made = out.emplace(key{});
        if (!made.reserve(checked.ndim_)) {
            out.reset();
            return out_of_memory("shape");
        }
        static_cast<tensor_ref&>(made) = checked;
        // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): `heap_` is a unique_ptr inside `out`
        std::int64_t* const storage = made.storage();
        for (std::int32_t i = 0; i < checked.ndim_; ++i) {
            storage[i] = checked.shape_[i];
            storage[checked.ndim_ + i] = checked.strides_[i];
        }
        made.shape_ = storage;
        made.strides_ = storage + checked.ndim_;
        made.owner_ = std::move(owner);
        return {};
    }

    /// Takes a received struct over when it is sound; otherwise it stays with `received`.
    [[nodiscard]] static result<tensor> take(foreign& received, import_policy policy = {}) noexcept {
        keep_alive owner(received.get(), received.is_versioned() ? release_versioned : release_legacy);
        auto made = take_as(received, owner, policy);
        owner.disown();
        return made;
    }

    /// `take`, with an owner of the caller's making in place of the bare deleter. On failure both arguments
    /// are left as they were.
    [[nodiscard]] static result<tensor> take_as(foreign& received, keep_alive& owner,
                                                import_policy policy = {}) noexcept {
        auto seen = received.describe();
        if (!seen) return seen.error();
        auto made = adopt(seen->tensor, seen->flags, seen->version, owner, policy);
        if (made) received.disown();
        return made;
    }

    /// Drops the claim on the memory without releasing it, for when the taking over must be undone.
    void disown() noexcept { owner_.disown(); }
    /// There is no way back: what a producer did not allow is not ours to allow.
    void set_read_only() noexcept { flags_ |= abi::flag::read_only; }

    [[nodiscard]] const keep_alive& owner() const noexcept { return owner_; }

private:
    static constexpr std::int32_t inline_rank = 5;

    tensor() noexcept : tensor_ref(nothing{}) {}

    [[nodiscard]] bool reserve(std::int32_t rank) noexcept {
        if (rank > inline_rank)
            heap_.reset(new (std::nothrow) std::int64_t[2 * static_cast<std::size_t>(rank)]);
        return rank <= inline_rank || heap_ != nullptr;
    }
    std::int64_t* storage() noexcept { return heap_ ? heap_.get() : inline_; }

    void steal(tensor& other) noexcept {
        static_cast<tensor_ref&>(*this) = other;
        owner_ = std::move(other.owner_);
        heap_ = std::move(other.heap_);
        if (!heap_) {
            std::memcpy(inline_, other.inline_, 2 * static_cast<std::size_t>(ndim_) * sizeof(std::int64_t));
            shape_ = inline_;
            strides_ = inline_ + ndim_;
        }
        static_cast<tensor_ref&>(other) = tensor_ref(nothing{});
    }

    static void release_versioned(void* m, void*) noexcept { foreign::call_deleter(m, true); }
    static void release_legacy(void* m, void*) noexcept { foreign::call_deleter(m, false); }

    keep_alive owner_;
    std::unique_ptr<std::int64_t[]> heap_;
    std::int64_t inline_[2 * inline_rank];  // shape, then strides; only the first 2 * ndim are ever read
};

}  // namespace tenon
