// tenon/tensor/tensor.hpp: an owned, validated, move-only tensor on any device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/detail/config.hpp>
#include <tenon/tensor/foreign.hpp>
#include <tenon/tensor/keep_alive.hpp>
#include <tenon/tensor/tensor_info.hpp>
#include <tenon/tensor/tensor_ref.hpp>
#include <tenon/tensor/validate.hpp>
#include <tenon/value/axes.hpp>
#include <tenon/value/error.hpp>

namespace tenon {

/// A tensor with something behind it that keeps its memory alive until this object goes. Thread-compatible:
/// one thread at a time; destruction may happen on any thread its `keep_alive` allows.
class tensor : public tensor_ref {
    struct key {};  // only the functions below can make one

public:
    explicit tensor(key) noexcept : tensor() {}
    tensor(tensor&& other) noexcept : tensor_ref(nothing{}) { steal(other); }
    tensor& operator=(tensor&& other) noexcept {
        if (this != &other) steal(other);
        return *this;
    }
    tensor(const tensor&) TENON_DELETED("a tensor has one owner: std::move it, or pass a tensor_ref");
    tensor& operator=(const tensor&) TENON_DELETED("a tensor has one owner: std::move it");
    ~tensor() = default;

    /// Checks a description and binds it to what keeps it alive. On failure `owner` is left as it was.
    [[nodiscard]] static result<tensor> adopt(const abi::dl_tensor& t, std::uint64_t flags,
                                              abi::dl_version version, keep_alive& owner) noexcept {
        return adopt_here(t, flags, version, owner);
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

    /// Another tensor of the same memory: it is given back when both are gone. For a class that holds a
    /// tensor and hands it out again and again. One thread at a time, like everything that changes a tensor.
    /// Neither is a copy that nobody else sees from then on.
    [[nodiscard]] result<tensor> share() noexcept {
        keep_alive second;
        if (!detail::share_owner(owner_, second)) return out_of_memory("owner");
        flags_ &= ~abi::flag::is_copied;
        std::optional<tensor> out;
        if (auto ok = keep(*this, second, out); !ok) return ok.error();
        return std::move(*out);  // NOLINT(bugprone-unchecked-optional-access): `keep` has filled it
    }

    // --- memory of your own: own() takes it in every case, and releases it at once when it fails -----------

    /// A vector becomes a tensor of its elements, row-major; the shape must have room for exactly those.
    template <class T, class A>
    [[nodiscard]] static result<tensor> own(std::vector<T, A>&& values, const axes& shape) {
        static_assert(
            !std::is_same_v<T, bool>,
            "tensor::own: std::vector<bool> is no array of elements: use std::vector<tenon::bool8>");
        const auto held = static_cast<std::int64_t>(values.size());
        if (const auto wanted = element_count_of(shape); wanted && *wanted != held) {
            const std::vector<T, A> gone = std::move(values);
            return refused("shape", "it does not have as many elements as the vector", *wanted, held);
        }
        return own_moved(values, [&](auto& v) { return tensor_info::contiguous(v.data(), shape); });
    }
    template <class T, class A>
    [[nodiscard]] static result<tensor> own(std::vector<T, A>&& values) {
        const auto size = values.size();
        return own(std::move(values), axes(size));
    }
    /// An array of at least as many elements as the shape says: nobody can check that.
    template <class T, class D>
    [[nodiscard]] static result<tensor> own(std::unique_ptr<T[], D>&& values, const axes& shape,
                                            tenon::device where = {}) {
        static_assert(std::is_pointer_v<typename std::unique_ptr<T[], D>::pointer>,
                      "own: the unique_ptr must hold a plain pointer");
        const tensor_info info = tensor_info::contiguous(values.get(), shape, where);
        if constexpr (std::is_empty_v<D> && std::is_default_constructible_v<D>) {
            keep_alive owner;
            if (values != nullptr) {
                (void)detail::keep_deleted(values.get(), values.get_deleter(), owner);
                (void)values.release();
            }
            return adopt_own(info, owner);
        } else {
            return own_moved(values, [&](auto&) { return info; });
        }
    }
    template <class T>
    [[nodiscard]] static result<tensor> own(std::shared_ptr<T> values, const axes& shape,
                                            tenon::device where = {}) {
        return own_moved(values, [&](auto& p) { return tensor_info::contiguous(p.get(), shape, where); });
    }
    /// Any object that says what it holds by a function `tensor_info describe(T&)` beside its class. It is
    /// moved to its final place first, so that memory inside the object itself may be described. A `describe`
    /// that takes `const T&` sees its vectors const, and what it describes is then read-only.
    template <class Owner>
        requires(!std::is_lvalue_reference_v<Owner> && describable<Owner>)
    [[nodiscard]] static result<tensor> own(Owner&& object) {
        return own_moved(object, [](auto& there) { return describe(there); });
    }
    /// Any object, and a function that describes it where it came to rest.
    template <class Owner, class Describe>
        requires(!std::is_lvalue_reference_v<Owner> && !std::is_same_v<Owner, tensor_info> &&
                 std::is_invocable_r_v<tensor_info, Describe&, Owner&>)
    [[nodiscard]] static result<tensor> own(Owner&& object, Describe&& describe_it) {
        return own_moved(object, describe_it);
    }
    /// Any object that keeps the described memory alive, which must not lie inside the object: it is moved.
    template <class Owner>
        requires(!std::is_lvalue_reference_v<Owner> && !std::is_same_v<Owner, tensor_info>)
    [[nodiscard]] static result<tensor> own(Owner&& object, const tensor_info& info) {
        return own_moved(object, [&](auto&) { return info; });
    }
    /// Memory that `deleter(pointer)` gives back, called once with the pointer of the description, on
    /// whichever thread lets go last.
    template <class Deleter>
        requires std::is_invocable_v<Deleter&, void*>
    [[nodiscard]] static result<tensor> own(const tensor_info& info, Deleter deleter) {
        keep_alive owner;
        if (!detail::keep_deleted(info.data(), std::move(deleter), owner)) return out_of_memory("deleter");
        return adopt_own(info, owner);
    }
    /// An array and the function that gives it back: `own(p, {2, 3}, std::free)`.
    template <class T, class Deleter>
        requires(element<T> && (std::is_invocable_v<Deleter&, T*> || std::is_invocable_v<Deleter&, void*>))
    [[nodiscard]] static result<tensor> own(T* data, const axes& shape, Deleter deleter,
                                            tenon::device where = {}) {
        keep_alive owner;
        if (!detail::keep_deleted(data, std::move(deleter), owner)) return out_of_memory("deleter");
        return adopt_own(tensor_info::contiguous(data, shape, where), owner);
    }
    /// Memory that something else keeps alive; with an empty `owner`, memory that is never given back.
    [[nodiscard]] static result<tensor> own(const tensor_info& info, keep_alive owner) noexcept {
        keep_alive kept = std::move(owner);  // a parameter lives on until the caller is done with its own
        return adopt_own(info, kept);
    }

    /// For whatever cannot be owned, a word on why.
    template <class Owner>
        requires(std::is_lvalue_reference_v<Owner> || !describable<Owner>)
    static result<tensor> own(Owner&&) {
        static_assert(!std::is_lvalue_reference_v<Owner>, "tensor::own: move the object in, with std::move");
        static_assert(
            describable<Owner>,
            "tensor::own: say what the object holds: by a function `tenon::tensor_info describe(T&)` "
            "beside its class, or by a tensor_info or a shape as the second argument");
        return out_of_memory("");
    }

    /// Takes a received struct over when it is sound; otherwise it stays with `received`.
    [[nodiscard]] static result<tensor> take(foreign& received) noexcept {
        keep_alive owner(received.get(), received.is_versioned() ? release_versioned : release_legacy);
        auto made = take_as(received, owner);
        owner.disown();
        return made;
    }

    /// `take`, with an owner of the caller's making in place of the bare deleter. On failure both arguments
    /// are left as they were.
    [[nodiscard]] static result<tensor> take_as(foreign& received, keep_alive& owner) noexcept {
        auto seen = received.describe();
        if (!seen) return seen.error();
        auto made = adopt(seen->tensor, seen->flags, seen->version, owner);
        if (made) received.disown();
        return made;
    }

    /// Drops the claim on the memory without releasing it, for when the taking over must be undone.
    void disown() noexcept { owner_.disown(); }
    /// Leaves an empty tensor: releases what is still owned.
    void reset() noexcept {
        owner_.reset();
        heap_.reset();
        static_cast<tensor_ref&>(*this) = tensor_ref(nothing{});
    }
    /// There is no way back: what a producer did not allow is not ours to allow.
    void set_read_only() noexcept { flags_ |= abi::flag::read_only; }
    /// Says that whoever gets the memory never writes to it, whatever it is told: read-only memory may then
    /// leave as a legacy struct, which cannot say that it is.
    void allow_legacy() noexcept { flags_ |= detail::mark::legacy; }

    /// Says that the same address is to be used by that device: what pinned and managed memory allow.
    void show_on(tenon::device where) noexcept { device_ = where.to_abi(); }

    /// Work on the memory has been queued on this stream: whoever reads it later comes after that. The stream
    /// must live until the tensor has been handed to Python, or has gone.
    void set_stream(void* stream) noexcept { stream_ = stream; }

    /// Says that the memory was copied for whoever holds this tensor, and that nobody else sees it.
    void mark_copied() noexcept { flags_ |= abi::flag::is_copied; }

    [[nodiscard]] const keep_alive& owner() const noexcept { return owner_; }
    /// For moving it elsewhere: the memory goes on living there, and this tensor must not be used after.
    [[nodiscard]] keep_alive& owner() noexcept { return owner_; }

private:
    static constexpr std::int32_t inline_rank = 5;

    [[nodiscard]] static std::optional<std::int64_t> element_count_of(const axes& shape) noexcept {
        for (const std::int64_t extent : shape.values())
            if (extent < 0) return std::nullopt;  // the validator has the words for it
        return shape.is_too_long() ? std::nullopt : element_count(shape.values());
    }

    /// `adopt`, inlined: what is known of a description when it is compiled need not be checked.
    TENON_HOT [[nodiscard]] static result<tensor> adopt_here(const abi::dl_tensor& t, std::uint64_t flags,
                                                             abi::dl_version version,
                                                             keep_alive& owner) noexcept {
        // Every path returns the one object, so that it is made where the caller wants it.
        result<tensor> made(std::in_place, key{});
        if (auto ok = detail::validator::check_arrays(t); !ok) {
            made.fail(ok.error());
            return made;
        }
        if (!made->reserve(t.ndim)) {
            made.fail(out_of_memory("shape"));
            return made;
        }
        if (auto ok = detail::validator::check(t, flags, version, made->storage(), *made); !ok)
            made.fail(ok.error());
        else
            made->owner_ = std::move(owner);
        return made;
    }

    TENON_HOT [[nodiscard]] static result<tensor> adopt_own(const tensor_info& info,
                                                            keep_alive& owner) noexcept {
        if (auto ok = info.check(); !ok) return ok.error();
        auto made = adopt_here(info.to_abi(), info.flags(), {abi::dlpack_major, abi::dlpack_minor}, owner);
        if (made) made->stream_ = info.stream();
        return made;
    }

    /// Moves from `object`, describes, adopts: in this order.
    template <class Owner, class Describe>
    [[nodiscard]] static result<tensor> own_moved(Owner& object, Describe&& describe_it) {
        keep_alive owner;
        Owner* const there = detail::keep_moved(object, owner);
        if (there == nullptr) {
            [[maybe_unused]] const Owner gone = std::move(object);
            return out_of_memory("owner");
        }
        return adopt_own(describe_it(*there), owner);
    }

    tensor() noexcept {}  // NOLINT(modernize-use-equals-default): the validator fills in the rest

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
            std::memcpy(inline_, other.inline_, sizeof inline_);  // all of it: quicker than the right amount
            shape_ = inline_;
            strides_ = inline_ + other.ndim_;
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
