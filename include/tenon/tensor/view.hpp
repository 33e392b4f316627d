// tenon/tensor/view.hpp: a typed, borrowed window on host memory: indexed, walked, or a span or mdspan.
#pragma once

#include <array>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include <tenon/tensor/elements.hpp>
#include <tenon/tensor/request.hpp>

#if __has_include(<version>)
#include <version>
#endif
#if defined(__cpp_lib_mdspan)
#include <mdspan>
#endif

namespace tenon {

/// Rank known only at run time.
inline constexpr int dynamic_rank = -1;

/// What foreign memory may be read as. A C++ `bool` may not: a stored 2 would be undefined behaviour; take
/// `bool8`.
template <class T>
concept viewable =
    element<T> && !std::same_as<std::remove_cv_t<T>, bool> && sizeof(T) == dtype_of<T>.itemsize();

/// Elements that fill whole bytes: each has an address, however the tensor is laid out.
template <class T>
concept addressable = viewable<T> && !dtype_of<T>.is_subbyte();

namespace detail {

/// Stops the compilation of a window on what is neither `viewable` nor void, with a word on why.
template <class T>
consteval bool require_viewable() {
    constexpr bool is_bool = std::same_as<std::remove_cv_t<T>, bool>;
    static_assert(!is_bool, "tenon: foreign memory may hold a 2 where C++ expects a bool: use tenon::bool8");
    static_assert(std::is_void_v<T> || element<T>,
                  "tenon: no dtype is known for this type: specialise tenon::dtype_traits for it (or, if it "
                  "is CUDA's or HIP's, include its header before any of Tenon's)");
    static_assert(is_bool || !element<T> || viewable<T>,
                  "tenon: dtype_traits gives this type a dtype of another size than sizeof(T)");
    return true;
}

/// What every window on a tensor can say of its layout. Shape and strides are its own copy when the rank is
/// fixed, a reference to the tensor's otherwise.
template <int Rank>
class layout {
public:
    [[nodiscard]] extents shape() const noexcept { return shape_; }
    [[nodiscard]] extents strides() const noexcept { return strides_; }
    [[nodiscard]] std::int64_t shape(std::size_t axis) const noexcept { return shape()[axis]; }
    [[nodiscard]] std::int64_t stride(std::size_t axis) const noexcept { return strides()[axis]; }
    [[nodiscard]] std::int32_t ndim() const noexcept { return static_cast<std::int32_t>(shape().size()); }
    [[nodiscard]] std::int64_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] bool is_c_contiguous() const noexcept { return tenon::is_c_contiguous(shape(), strides()); }

protected:
    explicit layout(const tensor_ref& t) noexcept : size_(t.size()) {
        if constexpr (Rank == dynamic_rank) {
            shape_ = t.shape();
            strides_ = t.strides();
        } else {
            for (std::size_t i = 0; i < shape_.size(); ++i) {
                shape_[i] = t.shape(i);
                strides_[i] = t.stride(i);
            }
        }
    }
    /// That of one index of the first axis.
    explicit layout(const layout<Rank + 1>& whole) noexcept
        requires(Rank >= 0)
        : size_(whole.size() / whole.shape(0)) {
        for (std::size_t i = 0; i < shape_.size(); ++i) {
            shape_[i] = whole.shape(i + 1);
            strides_[i] = whole.stride(i + 1);
        }
    }

private:
    using numbers = std::array<std::int64_t, static_cast<std::size_t>(Rank == dynamic_rank ? 0 : Rank)>;
    std::conditional_t<Rank == dynamic_rank, extents, numbers> shape_{}, strides_{};
    std::int64_t size_;
};

/// Whether a typed window can be opened. Elements of less than a byte have an address each only if they take
/// a byte each.
template <class T, int Rank>
[[nodiscard]] result<void> check_window(const tensor_ref& t, memory_space space) noexcept {
    request wanted{.rank = Rank, .space = space, .writable = !std::is_const_v<T>};
    if constexpr (!std::is_void_v<T>) {
        wanted.type = dtype_of<T>;
        if (space == memory_space::host) wanted.alignment = alignof(T);
    }
    if (auto ok = check(t, wanted); !ok) return ok.error().of_shape(t.shape().data());
    if (!std::is_void_v<T> && !addressable<T> && !t.is_subbyte_padded()) {
        return refused("dtype", "packed sub-byte elements have no address each")
            .of_shape(t.shape().data())
            .with_advice("take the tensor untyped and unpack its bytes");
    }
    return {};
}

/// No strides yet, in the array an mdspan library takes them in: its own, which its strided mapping shows.
template <class Mdspan>
auto no_strides() {
    using mapping = typename Mdspan::mapping_type;
    if constexpr (requires(const mapping& m) { m.strides(); })
        return std::remove_cvref_t<decltype(std::declval<const mapping&>().strides())>{};
    else
        return std::array<typename Mdspan::index_type, Mdspan::rank()>{};
}

}  // namespace detail

/// A window on a tensor in host-accessible memory. `view<const T>` takes any tensor of that type, `view<T>`
/// only one that may be written to. `view<const void>` and `view<void>` are windows that leave the type open.
///
/// Borrows: good for as long as the tensor (or the `py::borrow` call) it was made from.
template <class T = const void, int Rank = dynamic_rank>
class view {
    static_assert(detail::require_viewable<T>());
};

template <viewable T, int Rank>
class view<T, Rank> : public detail::layout<Rank> {
public:
    using detail::layout<Rank>::shape, detail::layout<Rank>::stride, detail::layout<Rank>::size,
        detail::layout<Rank>::empty, detail::layout<Rank>::is_c_contiguous;

    using element_type = T;
    using value_type = std::remove_cv_t<T>;

    /// Checks device, dtype, rank, writability and alignment.
    [[nodiscard]] static result<view> from(const tensor_ref& t) noexcept {
        if (auto ok = detail::check_window<T, Rank>(t, memory_space::host); !ok) return ok.error();
        return over(t);
    }
    /// Without the checks of `from`: for whoever has made them.
    [[nodiscard]] static view over(const tensor_ref& t) noexcept {
        return view(static_cast<T*>(t.data()), t);
    }

    /// What may be written to may also be read. (A template, because nvcc warns of a conversion to itself.)
    template <std::same_as<const T> U>
        requires(!std::is_const_v<T>)
    operator view<U, Rank>() const noexcept {
        return view<const T, Rank>(data_, *this);
    }
    template <class U, int R>
        requires(std::is_const_v<U> && !std::is_const_v<T>)
    view(const view<U, R>&) TENON_DELETED("const elements stay const: take a view<const T>");
    template <class U, int R>
        requires(R != Rank && (std::is_const_v<T> || !std::is_const_v<U>))
    view(const view<U, R>&) TENON_DELETED("the views have different ranks: view the tensor anew, or index");

    [[nodiscard]] T* data() const noexcept { return data_; }

    /// The element at an index, one number per axis. Bounds are checked by `assert` only, as for `std::span`.
    template <std::integral... Index>
        requires(sizeof...(Index) == static_cast<std::size_t>(Rank))
    [[nodiscard]] T& operator()(Index... index) const noexcept {
        std::int64_t offset = 0;
        std::size_t axis = 0;
        ((assert(static_cast<std::int64_t>(index) >= 0 && static_cast<std::int64_t>(index) < shape(axis)),
          offset += static_cast<std::int64_t>(index) * stride(axis), ++axis),
         ...);
        return data_[offset];
    }
    template <class... Index>
    void operator()(Index...) const TENON_DELETED("give one integer for each axis of the view");
    template <std::integral... Index>
        requires(Rank == dynamic_rank)  // a number of axes that nobody has looked at
    void operator()(Index...) const TENON_DELETED("state the rank to index it, or take x.as<T, 2>()");

    /// Rank 1: an element. Higher: the view of everything at this index of the first axis.
    [[nodiscard]] decltype(auto) operator[](std::int64_t i) const noexcept
        requires(Rank >= 1)
    {
        assert(i >= 0 && i < shape(0));
        if constexpr (Rank == 1)
            return static_cast<T&>(data_[i * stride(0)]);
        else
            return view<T, Rank - 1>(empty() ? data_ : data_ + i * stride(0), *this);
    }
    void operator[](std::int64_t) const TENON_DELETED("state the rank, 1 or more: view<T, 1>");

    /// Walks the first axis: elements at rank 1, rows (views of one rank less) above.
    struct iterator {
        using difference_type = std::ptrdiff_t;
        using value_type =
            std::conditional_t<Rank == 1, std::remove_cv_t<T>, view<T, Rank == 1 ? 0 : Rank - 1>>;

        const view* over = nullptr;
        std::int64_t at = 0;

        [[nodiscard]] decltype(auto) operator*() const noexcept { return (*over)[at]; }
        iterator& operator++() noexcept {
            ++at;
            return *this;
        }
        iterator operator++(int) noexcept { return {over, at++}; }
        friend bool operator==(const iterator& a, const iterator& b) noexcept { return a.at == b.at; }
    };
    [[nodiscard]] iterator begin() const noexcept
        requires(Rank >= 1)
    {
        return {this, 0};
    }
    [[nodiscard]] iterator end() const noexcept
        requires(Rank >= 1)
    {
        return {this, shape(0)};
    }
    void begin() const TENON_DELETED("walk elements(), use tenon::for_each, or state the rank: view<T, 1>");
    void end() const TENON_DELETED("walk elements(), use tenon::for_each, or state the rank: view<T, 1>");

    /// All elements, in row-major order whatever the strides and the rank: for one window; to write several,
    /// or for speed, there is `for_each`.
    [[nodiscard]] auto elements() const noexcept {
        return detail::elements<T, detail::layout<Rank>>(data_, *this);
    }

    /// All elements as one span, when they lie in row-major order without gaps.
    [[nodiscard]] result<std::span<T>> span() const noexcept {
        if (!is_c_contiguous()) {
            return refused("strides", "only row-major contiguous memory is a span")
                .with_advice("index the view, or make the array contiguous first");
        }
        return std::span<T>(data_, static_cast<std::size_t>(size()));
    }

    /// The view as an mdspan of any make (standard, Kokkos, CCCL), strided or contiguous by its layout:
    /// `v.template to<std::mdspan<float, std::dextents<int, 2>, std::layout_stride>>()`.
    template <class Mdspan>
    [[nodiscard]] result<Mdspan> to() const noexcept
        requires(Rank >= 0 && Mdspan::rank() == static_cast<std::size_t>(Rank))
    {
        using mapping = typename Mdspan::mapping_type;
        using index = typename Mdspan::index_type;
        std::array<index, Mdspan::rank()> sizes{};
        auto steps = detail::no_strides<Mdspan>();
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            const std::size_t fixed = Mdspan::static_extent(i);
            if (fixed != std::dynamic_extent && std::cmp_not_equal(fixed, shape(i))) {
                return refused("shape", "the mdspan has another static extent", shape(i),
                               static_cast<std::int64_t>(fixed))
                    .at_axis(i);
            }
            // The stride of an axis that is never stepped along may be anything; 1 is as good.
            const std::int64_t step = !empty() && shape(i) > 1 ? stride(i) : 1;
            if (!std::in_range<index>(shape(i)) || !std::in_range<index>(step) || step <= 0)
                return refused("strides", "an mdspan of this type cannot express this axis", step).at_axis(i);
            sizes[i] = static_cast<index>(shape(i));
            steps[i] = static_cast<index>(step);
        }
        // One by one: the libraries do not take each other's arrays.
        const auto all = [&]<std::size_t... I>(std::index_sequence<I...>) {
            return typename Mdspan::extents_type(sizes[I]...);
        }(std::make_index_sequence<Mdspan::rank()>{});
        if constexpr (std::is_constructible_v<mapping, decltype(all), decltype(steps)>) {
            return Mdspan(data_, mapping(all, steps));
        } else {
            const mapping compact(all);
            for (std::size_t i = 0; i < sizes.size(); ++i) {
                if (!empty() && shape(i) > 1 && std::cmp_not_equal(compact.stride(i), stride(i))) {
                    return refused("strides", "the mdspan's layout steps differently", stride(i),
                                   static_cast<std::int64_t>(compact.stride(i)))
                        .at_axis(i);
                }
            }
            return Mdspan(data_, compact);
        }
    }
    template <class Mdspan>
    void to() const TENON_DELETED("the view must have a fixed rank, the same as the mdspan's");
#if defined(__cpp_lib_mdspan)
    /// `to` for the standard's strided mdspan.
    [[nodiscard]] auto mdspan() const noexcept
        requires(Rank >= 0)
    {
        return to<std::mdspan<T, std::dextents<std::int64_t, static_cast<std::size_t>(Rank)>,
                              std::layout_stride>>();
    }
#endif

private:
    template <class, int>
    friend class view;

    template <class Laid>
    view(T* data, const Laid& out) noexcept : detail::layout<Rank>(out), data_(data) {}

    T* data_;
};

/// The window that leaves the element type open: bytes, strides and dtype; `as<T, Rank>()` closes it.
template <class T, int Rank>
    requires std::is_void_v<T>
class view<T, Rank> : public tensor_ref {
public:
    using element_type = T;

    [[nodiscard]] static result<view> from(const tensor_ref& t) noexcept {
        if (auto ok = detail::check_window<T, Rank>(t, memory_space::host); !ok) return ok.error();
        return over(t);
    }
    /// Without the checks of `from`: for whoever has made them.
    [[nodiscard]] static view over(const tensor_ref& t) noexcept { return view(t); }

    /// Const where the window is.
    // NOLINTNEXTLINE(bugprone-derived-method-shadowing-base-method): on purpose
    [[nodiscard]] T* data() const noexcept { return tensor_ref::data(); }

    /// The typed view; a window on const stays const.
    template <viewable U, int R = Rank>
        requires(!std::is_const_v<T> || std::is_const_v<U>)
    [[nodiscard]] result<view<U, R>> as() const noexcept {
        return view<U, R>::from(*this);
    }
    template <class U, int R = Rank>
        requires(viewable<U> && std::is_const_v<T> && !std::is_const_v<U>)
    void as() const TENON_DELETED("const elements stay const: write as<const T>()");
    template <class U, int R = Rank>
        requires(!viewable<U>)
    void as() const TENON_DELETED("bool is tenon::bool8 here; a type of your own needs tenon::dtype_traits");

private:
    explicit view(const tensor_ref& t) noexcept : tensor_ref(t) {}
};

}  // namespace tenon
