// src/tensor/managed.hpp: a tensor leaves as DLPack's managed struct, in one allocation.
#pragma once

#include <tenon/tensor/tensor.hpp>
#include <tenon/tensor/validate.hpp>
#include "../standard.hpp"

namespace tenon {

/// How a tensor is to be shown to its consumer.
struct export_view {
    bool fresh_copy = false;  ///< made for this consumer alone, which may do with it what it likes
    std::optional<device> shown_on = {};  ///< host memory of any kind as the CPU's, managed as a device's
};

/// Whether the struct can say what there is to say: a legacy one has no flags.
template <class Managed>
[[nodiscard]] result<void> can_leave_as(const tensor_ref& t) noexcept {
    if constexpr (std::is_same_v<Managed, abi::managed_tensor>) {
        if (!t.may_leave_as_legacy()) {
            return refused("max_version",
                           "a read-only tensor cannot leave as a legacy DLPack struct, which "
                           "has no flag for it")
                .with_advice(
                    "the consumer must pass max_version=(1, 0) or later, or ask for a copy; "
                    "Tensor.to() shares it with libraries that never write");
        }
        if (t.is_subbyte_padded()) {
            return refused("max_version",
                           "padded sub-byte elements cannot leave as a legacy DLPack struct, "
                           "which has no flag for them")
                .with_advice("the consumer must pass max_version=(1, 0) or later");
        }
    }
    return {};
}

namespace detail {

/// DLPack has one number for host memory, wherever the hardware that pinned it counts (P42).
[[nodiscard]] inline abi::dl_device exported_device(device where, const export_view& how) noexcept {
    if (how.shown_on) return how.shown_on->to_abi();
    return where.is_host_accessible() ? abi::dl_device{where.type, 0} : where.to_abi();
}

/// The description of a tensor for consumers, less shape and strides. Consumers that ignore `byte_offset` are
/// common, so it is folded into the address wherever there is one; nothing has no address.
[[nodiscard]] inline abi::dl_tensor exported_tensor(const tensor_ref& t, const export_view& how) noexcept {
    const bool fold = !t.device().has_opaque_handle();
    void* const data = t.empty() ? nullptr : fold ? t.data() : t.base();
    return {data,    exported_device(t.device(), how),       t.ndim(), t.dtype().to_abi(), nullptr,
            nullptr, fold || t.empty() ? 0 : t.byte_offset()};
}

/// One allocation: the managed struct, what keeps the memory alive, then shape and strides.
template <class Managed>
struct managed_block : exported_block<managed_block<Managed>> {
    Managed managed;
    bool* released;  ///< set when it goes, for whoever hands it to a function that may or may not let it go
    std::uint64_t marks;  ///< what the struct has no flags for, for when it comes back to us

    /// With room for so many axes; null when there is no memory.
    TENON_HOT [[nodiscard]] static managed_block* make(std::size_t rank) noexcept {
        void* const room = std::malloc(sizeof(managed_block) + 2 * rank * sizeof(std::int64_t));
        return room != nullptr ? new (room) managed_block : nullptr;
    }
    static void operator delete(void* block) noexcept { std::free(block); }

    std::int64_t* metadata() noexcept { return reinterpret_cast<std::int64_t*>(this + 1); }

    /// What remains to be said when the axes are in place.
    TENON_HOT Managed* fill(const tensor_ref& t, keep_alive& memory, const export_view& how) noexcept {
        if constexpr (std::is_same_v<Managed, abi::managed_tensor_versioned>) {
            managed.version = {abi::dlpack_major, abi::dlpack_minor};
            // "Copied" tells a consumer that nobody else sees the memory: true of a copy made for it alone.
            managed.flags = (t.flags() & abi::flag::all_known & ~abi::flag::is_copied) |
                            (how.fresh_copy ? abi::flag::is_copied : 0);
        }
        managed.tensor = exported_tensor(t, how);
        managed.tensor.shape = metadata();
        managed.tensor.strides = metadata() + t.ndim();
        managed.manager_ctx = this;
        managed.deleter = &release_managed;
        this->owner = std::move(memory);
        released = nullptr;
        marks = validator::marks_of(t);
        return &managed;
    }

    static managed_block* of(Managed* m) noexcept { return static_cast<managed_block*>(m->manager_ctx); }

    static void release_managed(Managed* self) noexcept {
        managed_block* const block = of(self);
        if (block->released != nullptr) *block->released = true;
        managed_block::release(block);
    }
};

/// The block around a struct of our own making; null for one of anybody else's.
template <class Managed>
[[nodiscard]] inline const managed_block<Managed>* own_block(Managed* m) noexcept {
    if (m->deleter != &managed_block<Managed>::release_managed) return nullptr;
    const managed_block<Managed>* const block = managed_block<Managed>::of(m);
    return &block->managed == m ? block : nullptr;
}

/// What a struct of our own making remembers beyond its flags; nothing for one of anybody else's.
template <class Managed>
[[nodiscard]] inline std::uint64_t marks_of(Managed* m) noexcept {
    const managed_block<Managed>* const block = own_block(m);
    return block != nullptr ? block->marks : 0;
}

}  // namespace detail

/// A managed struct over memory that `owner` keeps alive, `owner` moved into it; null when there is no memory
/// for it, and then `owner` is left as it was. The caller has asked `can_leave_as`. Its deleter may be called
/// on any thread.
template <class Managed>
TENON_HOT [[nodiscard]] inline Managed* make_managed(const tensor_ref& t, keep_alive& owner,
                                                     export_view how = {}) noexcept {
    const auto rank = static_cast<std::size_t>(t.ndim());
    auto* const block = detail::managed_block<Managed>::make(rank);
    if (block == nullptr) return nullptr;
    std::int64_t* const metadata = block->metadata();
    for (std::size_t i = 0; i < rank; ++i) {
        metadata[i] = t.shape(i);
        metadata[rank + i] = t.stride(i);
#if defined(__GNUC__)
        asm("");  // one by one: a vector would have to wait for what has just been stored in parts
#endif
    }
    return block->fill(t, owner, how);
}

}  // namespace tenon
