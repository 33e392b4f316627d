// tenon/tensor/tensor.hpp: an owned, validated, move-only tensor on any device.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include <tenon/tensor/keep_alive.hpp>
#include <tenon/tensor/tensor_info.hpp>
#include <tenon/tensor/tensor_ref.hpp>

namespace tenon {

class foreign;

namespace detail {

// What can be owned is known by what it can do: no container's or pointer's header is included for it.
template <class V>
concept packs_truth_values = requires(V& v) {
    v.flip();
    requires std::is_same_v<typename V::value_type, bool>;
};
/// A container of elements side by side that frees them, as a span does not.
template <class V>
concept owning_container = !std::is_lvalue_reference_v<V> && !std::is_trivially_destructible_v<V> &&
                           !describable<V> && (packs_truth_values<V> || requires(V& v) {
                               { v.data() } -> std::same_as<typename V::value_type*>;
                               { v.size() } -> std::convertible_to<std::size_t>;
                           });
template <class P>
concept owning_pointer = !std::is_lvalue_reference_v<P> && requires(P& p) {
    p.get_deleter();
    p.release();
    p[0];  // unique_ptr<T[]>, and not unique_ptr<T>
};
template <class P>
concept sharing_pointer = requires(P& p) {
    p.get();
    { p.use_count() } -> std::convertible_to<long>;
    typename P::element_type;
};

/// What holds a reference to an object of Python's, as the binders and `py::ref` do: known by its functions,
/// for nothing of Python's is seen here.
template <class H>
concept python_handle = requires(H& h) {
    h.ptr();
    h.inc_ref();
    h.dec_ref();
} || requires(H& h) { H::take(H::borrow(h.get()).release()); };

}  // namespace detail

/// A tensor with something behind it that keeps its memory alive until this object goes. Thread-compatible:
/// one thread at a time; destruction may happen on any thread its `keep_alive` allows.
class tensor : public tensor_ref {
    struct key {};  // only the functions below can make one

public:
    /// Empty: without elements, and without anything to keep.
    tensor() noexcept : tensor_ref(nothing{}) {}
    explicit tensor(key) noexcept {}  // the validator fills in the rest
    tensor(tensor&& other) noexcept : tensor(key{}) { steal(other); }
    tensor& operator=(tensor&& other) noexcept {
        if (this != &other) steal(other);
        return *this;
    }
    tensor(const tensor&) TENON_DELETED("a tensor has one owner: std::move it, or keep a shared_tensor");
    tensor& operator=(const tensor&) TENON_DELETED("a tensor has one owner: std::move it");
    ~tensor() { delete[] heap_; }

    /// Checks a description and binds it to what keeps it alive. On failure `owner` is left as it was.
    [[nodiscard]] TENON_API static result<tensor> adopt(const abi::dl_tensor& t, std::uint64_t flags,
                                                        abi::dl_version stated, keep_alive& owner) noexcept;

    /// Binds an already checked tensor to what keeps its memory alive, in place. On failure `owner` and `out`
    /// are left as they were.
    [[nodiscard]] TENON_API static result<void> keep(const tensor_ref& checked, keep_alive& owner,
                                                     std::optional<tensor>& out) noexcept;

    /// Another tensor of the same memory, which is given back when both are gone: for a class that hands its
    /// tensor out again and again. Neither is a copy that nobody else sees from then on.
    [[nodiscard]] TENON_API result<tensor> share() noexcept;

    // --- memory of your own: own() takes it in every case, and releases it at once when it fails -----------

    /// A vector, or any container like it, becomes a tensor of its elements, row-major; the shape must have
    /// room for exactly those.
    template <detail::owning_container V>
    [[nodiscard]] static result<tensor> own(V&& values, const axes& shape) {
        static_assert(
            !detail::packs_truth_values<V>,
            "tensor::own: std::vector<bool> is no array of elements: use std::vector<tenon::bool8>");
        V taken = std::forward<V>(values);
        if (auto ok = check_count(shape, static_cast<std::int64_t>(taken.size())); !ok) return ok.error();
        return own_moved(taken, [&](auto& v) { return tensor_info::contiguous(v.data(), shape); });
    }
    /// The same, for who names the elements: `own<double>(values, shape)`.
    template <class T, detail::owning_container V>
        requires std::is_same_v<T, typename V::value_type>
    [[nodiscard]] static result<tensor> own(V&& values, const axes& shape) {
        return own(std::forward<V>(values), shape);
    }
    template <detail::owning_container V>
    [[nodiscard]] static result<tensor> own(V&& values) {
        const auto size = values.size();
        return own(std::forward<V>(values), axes(size));
    }
    /// An array behind a unique_ptr, of at least as many elements as the shape says: nobody can check that.
    template <detail::owning_pointer P>
    [[nodiscard]] static result<tensor> own(P&& values, const axes& shape, tenon::device where = {}) {
        using D = typename P::deleter_type;
        static_assert(std::is_pointer_v<typename P::pointer>,
                      "own: the unique_ptr must hold a plain pointer");
        tensor_info info = tensor_info::contiguous(values.get(), shape, where);
        if constexpr (std::is_empty_v<D> && std::is_default_constructible_v<D>) {
            keep_alive owner;
            if (values.get() != nullptr) {
                (void)detail::keep_deleted(values.get(), values.get_deleter(), owner);
                (void)values.release();
            }
            return adopt_own(info, owner);
        } else {
            return own_moved(values, [&](auto&) { return info; });
        }
    }
    /// Memory behind a shared_ptr, of which this is one holder more.
    template <class P>
        requires detail::sharing_pointer<std::remove_cvref_t<P>>
    [[nodiscard]] static result<tensor> own(P&& values, const axes& shape, tenon::device where = {}) {
        std::remove_cvref_t<P> held(std::forward<P>(values));
        return own_moved(held, [&](auto& p) { return tensor_info::contiguous(p.get(), shape, where); });
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
        requires(std::is_lvalue_reference_v<Owner> ||
                 !(describable<Owner> || detail::owning_container<Owner>))
    static result<tensor> own(Owner&&) {
        static_assert(!std::is_lvalue_reference_v<Owner>, "tensor::own: move the object in, with std::move");
        static_assert(
            describable<Owner>,
            "tensor::own: say what the object holds: by a function `tenon::tensor_info describe(T&)` "
            "beside its class, or by a tensor_info or a shape as the second argument");
        return out_of_memory("");
    }

    template <element T>
    static void own(T*, const axes&) TENON_DELETED("say who gives it back: own(data, shape, deleter)");
    template <detail::owning_container V>
    static void own(V&, const axes&) TENON_DELETED("move the values in: own(std::move(values), shape)");
    template <class Owner>
    static void own(Owner&, const tensor_info&) TENON_DELETED("std::move the owner, or use tenon::py::own");

    /// Takes a received struct over when it is sound; otherwise it stays with `received`.
    [[nodiscard]] TENON_API static result<tensor> take(foreign& received) noexcept;

    /// `take`, with an owner of the caller's making in place of the bare deleter. On failure both arguments
    /// are left as they were.
    [[nodiscard]] TENON_API static result<tensor> take_as(foreign& received, keep_alive& owner) noexcept;

    /// Drops the claim on the memory without releasing it, for when the taking over must be undone.
    void disown() noexcept { owner_.disown(); }
    /// Leaves an empty tensor: releases what is still owned.
    void reset() noexcept {
        owner_.reset();
        delete[] std::exchange(heap_, nullptr);
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

    /// Says that it stands for a number of Python's, which has no axes.
    void mark_number() noexcept { flags_ |= detail::mark::number; }

    [[nodiscard]] const keep_alive& owner() const noexcept { return owner_; }
    /// For moving it elsewhere: the memory goes on living there, and this tensor must not be used after.
    [[nodiscard]] keep_alive& owner() noexcept { return owner_; }

private:
    static constexpr std::int32_t inline_rank = 5;

    /// Whether there is room for exactly so many elements; what else is wrong, the validator says.
    [[nodiscard]] TENON_API static result<void> check_count(const axes& shape, std::int64_t held) noexcept;
    [[nodiscard]] TENON_API static result<tensor> adopt_own(const tensor_info& info,
                                                            keep_alive& owner) noexcept;

    /// Moves from `object`, describes, adopts: in this order.
    template <class Owner, class Describe>
    [[nodiscard]] static result<tensor> own_moved(Owner& object, Describe&& describe_it) {
        static_assert(!detail::python_handle<Owner>,
                      "tensor::own: a Python object must not be let go of without the GIL; "
                      "use tenon::py::own(object, info), which sees to that");
        keep_alive owner;
        Owner* const there = detail::keep_moved(object, owner);
        if (there == nullptr) {
            [[maybe_unused]] const Owner gone = std::move(object);
            return out_of_memory("owner");
        }
        return adopt_own(describe_it(*there), owner);
    }

    [[nodiscard]] bool reserve(std::int32_t rank) noexcept;
    std::int64_t* storage() noexcept { return heap_ != nullptr ? heap_ : inline_; }

    TENON_API void steal(tensor& other) noexcept;

    keep_alive owner_;
    std::int64_t* heap_ = nullptr;          // of the axes that do not fit below
    std::int64_t inline_[2 * inline_rank];  // shape, then strides; only the first 2 * ndim are ever read
};

}  // namespace tenon
