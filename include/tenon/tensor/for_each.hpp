// tenon/tensor/for_each.hpp: a function called for each element of one or several windows, and their shapes
// broadcast. Where memory allows, that is one plain loop, which compilers vectorize.
//
//     tenon::for_each(x, y, out, [](float a, float b, float& to) { to = a * b; });
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include <tenon/tensor/axes.hpp>
#include <tenon/tensor/device_view.hpp>
#include <tenon/tensor/view.hpp>

namespace tenon {

/// Asks `for_each` for NumPy's broadcasting: axes that are missing in front, or have one element, go along
/// with those of the other windows. A window on elements that are not const has the full shape.
struct broadcast_t {};
inline constexpr broadcast_t broadcast{};

namespace detail {

/// A window as the plan of a loop sees it.
struct walked {
    tenon::extents shape, strides;
    bool is_written;
};

/// The axes of a loop over several windows, the innermost first: at least two, of which the outer may have
/// one element, as what is left of contiguous memory.
struct loop_axes {
    std::size_t rank;
    std::int64_t extents[max_rank];
    bool is_plain;  ///< each step of the innermost axis goes to the next element, in every window
    bool repeats;   ///< the same, but for windows that stay at one element, which is only read
};

/// Plans a loop over windows of one shape, or of shapes that broadcast. The step of a window along an axis,
/// in elements, is written to `steps[axis * count + window]`. When there is nothing to do the rank is 0.
[[nodiscard]] TENON_API result<void> plan_loop(const walked* windows, std::size_t count, bool broadcasts,
                                               loop_axes& axes, std::int64_t* steps) noexcept;
[[nodiscard]] TENON_API result<axes> broadcast_shapes(const extents* shapes, std::size_t count) noexcept;

/// The element that a window stays at, as many times as there are in a block: a plain loop over blocks is
/// vectorized, and one that steps by zero is not.
template <class T>
class repeated {
public:
    static constexpr std::int64_t block = 128;
    repeated(T* data, std::int64_t step, std::int64_t count) noexcept : data_(data), repeats_(step == 0) {
        for (std::int64_t i = 0; repeats_ && i < count && i < block; ++i) values_[i] = *data;
    }
    [[nodiscard]] T* from(std::int64_t first) const noexcept { return repeats_ ? values_ : data_ + first; }

private:
    T* data_;
    bool repeats_;
    std::remove_const_t<T> values_[block];
};
/// What is written to is always there itself.
template <class T>
    requires(!std::is_const_v<T>)
class repeated<T> {
public:
    static constexpr std::int64_t block = 128;
    repeated(T* data, std::int64_t, std::int64_t) noexcept : data_(data) {}
    [[nodiscard]] T* from(std::int64_t first) const noexcept { return data_ + first; }

private:
    T* data_;
};
template <class T>
inline constexpr bool is_repeatable =
    !std::is_const_v<T> ||
    (std::is_trivially_copyable_v<T> && std::is_trivially_default_constructible_v<std::remove_const_t<T>>);

/// A loop over `Count` windows.
template <std::size_t Count, bool Broadcasts>
class loop {
public:
    explicit loop(std::int64_t size) noexcept {
        axes_.rank = 2;
        axes_.extents[0] = size;
        axes_.extents[1] = 1;
        axes_.is_plain = true;
        axes_.repeats = false;
        for (std::int64_t& step : steps_[1]) step = 0;
    }
    loop(const walked (&windows)[Count], result<void>& outcome) noexcept {
        outcome = plan_loop(windows, Count, Broadcasts, axes_, steps_[0].data());
    }

    template <class F, std::size_t... I, class... T>
    void run(F& f, std::index_sequence<I...> numbers, T*... data) const {
        if (axes_.rank == 0) return;
        std::int64_t index[max_rank], at[Count] = {};
        for (std::size_t axis = 2; axis < axes_.rank; ++axis) index[axis] = 0;
        do {
            for (std::int64_t i = 0; i < axes_.extents[1]; ++i)
                run_inner(f, numbers, (data + at[I] + i * steps_[1][I])...);
        } while (advance(index, at));
    }

private:
    template <class F, std::size_t... I, class... T>
    void run_inner(F& f, std::index_sequence<I...>, T*... data) const {
        const std::int64_t count = axes_.extents[0];
        if constexpr (Broadcasts && (is_repeatable<T> && ...)) {
            if (axes_.repeats) return run_blocks(f, count, repeated<T>(data, steps_[0][I], count)...);
        }
        if (axes_.is_plain) {
            run_plain(f, count, data...);
        } else {
            const std::array<std::int64_t, Count> steps = steps_[0];
            for (std::int64_t i = 0; i < count; ++i) f(data[i * steps[I]]...);
        }
    }
    template <class F, class... Window>
    static void run_blocks(F& f, std::int64_t count, const Window&... windows) {
        constexpr std::int64_t block = repeated<int>::block;
        for (std::int64_t first = 0; first < count; first += block)
            run_plain(f, count - first < block ? count - first : block, windows.from(first)...);
    }
    template <class F, class... T>
    static void run_plain(F& f, std::int64_t count, T*... data) {
        for (std::int64_t i = 0; i < count; ++i) f(data[i]...);
    }
    /// Goes to the next index of the axes beyond the second; false when there is none.
    bool advance(std::int64_t (&index)[max_rank], std::int64_t (&at)[Count]) const noexcept {
        for (std::size_t axis = 2; axis < axes_.rank; ++axis) {
            const bool is_next = ++index[axis] != axes_.extents[axis];
            // Back by as much as it went forward, which is known to fit.
            const std::int64_t times = is_next ? 1 : 1 - axes_.extents[axis];
            for (std::size_t i = 0; i < Count; ++i) at[i] += steps_[axis][i] * times;
            if (is_next) return true;
            index[axis] = 0;
        }
        return false;
    }

    loop_axes axes_;
    std::array<std::int64_t, Count> steps_[max_rank];  // only those of the axes are ever read
};

template <class T, int Rank>
void find_window(const view<T, Rank>&);
template <class T, int Rank>
void find_window(const device_view<T, Rank>&);
template <class W>
concept any_window = requires(const W& w) { find_window(w); };
template <class W>
concept readable_window = requires(const W& w) { w.elements(); };

/// The rank, where it is known.
template <class T, int Rank>
std::integral_constant<int, Rank> rank_in(const view<T, Rank>&);
template <class W>
inline constexpr int rank_of = decltype(rank_in(std::declval<const W&>()))::value;
template <class W>
inline constexpr bool is_written = !std::is_const_v<typename W::element_type>;

template <class W, class... Others>
inline constexpr bool have_one_rank =
    ((rank_of<W> == dynamic_rank || rank_of<Others> == dynamic_rank || rank_of<W> == rank_of<Others>) && ...);
/// None that is written to has fewer axes than another.
template <class W, class... All>
inline constexpr bool can_have_full_rank =
    !is_written<W> || rank_of<W> == dynamic_rank || ((rank_of<W> >= rank_of<All>) && ...);

/// Stops the compilation of what is no loop over host memory, with a word on why.
template <bool Broadcasts, class F, class... W>
consteval bool require_loop() {
    constexpr bool has_windows = sizeof...(W) > 0 && (any_window<W> && ...);
    static_assert(has_windows,
                  "tenon::for_each: give windows (tenon::view, tenon::array), then the function");
    if constexpr (has_windows) {
        constexpr bool is_typed = (!std::is_void_v<typename W::element_type> && ...);
        static_assert(is_typed, "tenon::for_each: an element type is open: take a view of one, or dispatch");
        constexpr bool is_here = (readable_window<W> && ...);
        static_assert(!is_typed || is_here,
                      "tenon::for_each: not readable by the host: pass data() to a kernel");
        if constexpr (is_typed && is_here) {
            constexpr bool takes_elements = std::is_invocable_v<F&, typename W::element_type&...>;
            static_assert(takes_elements,
                          "tenon::for_each: the function must take an element of each window: "
                          "T or const T&, and T& where T is not const");
            constexpr bool has_one_rank = Broadcasts || (have_one_rank<W, W...> && ...);
            static_assert(has_one_rank,
                          "tenon::for_each: these never have one shape, for their ranks differ; "
                          "for NumPy's broadcasting write for_each(tenon::broadcast, ...)");
            constexpr bool has_full_rank = !Broadcasts || (can_have_full_rank<W, W...> && ...);
            static_assert(has_full_rank,
                          "tenon::for_each: what may be written to needs as many axes as any "
                          "other; of what is only read take a view<const T>");
            return takes_elements && has_one_rank && has_full_rank;
        }
    }
    return false;
}

/// The shape, where an argument keeps it, by which an error about it finds its name.
template <class W>
[[nodiscard]] extents stored_shape(const W& window) noexcept {
    if constexpr (std::is_convertible_v<const W&, const tensor_ref&>)
        return static_cast<const tensor_ref&>(window).shape();
    else
        return window.shape();
}

/// The loop itself. Row-major memory of one shape, which is what most arrays are, needs no plan.
template <bool Broadcasts, class F, class W, class... Others>
[[nodiscard]] result<void> walk(F& f, const W& first, const Others&... others) {
    constexpr std::size_t count = 1 + sizeof...(Others);
    constexpr auto numbers = std::make_index_sequence<count>{};
    if (first.is_c_contiguous() &&
        ((others.is_c_contiguous() && is_same(first.shape(), others.shape())) && ...)) [[likely]] {
        loop<count, Broadcasts>(first.size()).run(f, numbers, first.data(), others.data()...);
        return {};
    }
    const walked windows[] = {{stored_shape(first), first.strides(), is_written<W>},
                              {stored_shape(others), others.strides(), is_written<Others>}...};
    result<void> outcome;
    const loop<count, Broadcasts> planned(windows, outcome);
    if (outcome) planned.run(f, numbers, first.data(), others.data()...);
    return outcome;
}

/// The function stands last, and is taken first.
template <bool Broadcasts, std::size_t... I, class... A>
[[nodiscard]] result<void> walk_all(std::index_sequence<I...>, const std::tuple<A&...>& all) {
    using function = std::tuple_element_t<sizeof...(I), std::tuple<A...>>;
    if constexpr (require_loop<Broadcasts, function,
                               std::remove_cv_t<std::tuple_element_t<I, std::tuple<A...>>>...>())
        return walk<Broadcasts>(std::get<sizeof...(I)>(all), std::get<I>(all)...);
    else
        return {};
}

}  // namespace detail

/// Calls the function, which stands last, once for each element of the windows before it, with a reference to
/// that of each. The windows are views and arrays, of one shape: an error says which is not. The function is
/// called in the order of the memory, whatever that is; what it throws passes.
template <class... A>
    requires(!std::is_same_v<std::remove_cvref_t<A>, broadcast_t> && ...)
[[nodiscard]] result<void> for_each(A&&... windows_and_function) {
    static_assert(sizeof...(A) > 1,
                  "tenon::for_each: give windows (tenon::view, tenon::array), then the function");
    return detail::walk_all<false>(std::make_index_sequence<sizeof...(A) - 1>{},
                                   std::tuple<std::remove_reference_t<A>&...>(windows_and_function...));
}
/// The same for windows whose shapes broadcast as NumPy's do.
template <class... A>
[[nodiscard]] result<void> for_each(broadcast_t, A&&... windows_and_function) {
    static_assert(sizeof...(A) > 1,
                  "tenon::for_each: give windows (tenon::view, tenon::array), then the function");
    return detail::walk_all<true>(std::make_index_sequence<sizeof...(A) - 1>{},
                                  std::tuple<std::remove_reference_t<A>&...>(windows_and_function...));
}

/// The shape that these come to together: of views, arrays and tensors, wherever they are.
template <class... T>
[[nodiscard]] result<axes> broadcast_shape(const T&... tensors) noexcept {
    static_assert(sizeof...(T) > 0, "tenon::broadcast_shape: give views, arrays or tensors");
    const extents shapes[] = {detail::stored_shape(tensors)...};
    return detail::broadcast_shapes(shapes, sizeof...(T));
}

}  // namespace tenon
