// tenon/tensor/dispatch.hpp: run the right function for where tensors live and for what they are made of.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <tenon/tensor/device_view.hpp>

namespace tenon {

/// A tensor and the window that is wanted on it, for `together`. Borrows the tensor.
template <class T = const void, int Rank = dynamic_rank>
class typed {
public:
    using element_type = T;
    static constexpr int rank = Rank;

    explicit typed(const tensor_ref& t) noexcept : tensor_(&t) {}
    operator const tensor_ref&() const noexcept { return *tensor_; }  // NOLINT(google-explicit-constructor)

private:
    const tensor_ref* tensor_;
};

namespace detail {
template <class... Fns>
struct overloaded : Fns... {
    using Fns::operator()...;
};

/// Calls `fn` and wraps what it returns, so that `void` is a result too.
template <class R, class Fn, class... Args>
result<R> call(Fn& fn, Args&&... args) {
    if constexpr (std::is_void_v<R>) {
        fn(std::forward<Args>(args)...);
        return {};
    } else {
        return R(fn(std::forward<Args>(args)...));
    }
}

/// A tensor that says which window is wanted on it: an `array`, or one that is `typed`.
template <class A>
concept windowed = std::convertible_to<const A&, const tensor_ref&> && requires {
    typename A::element_type;
    { A::rank } -> std::convertible_to<int>;
};

template <windowed A>
using host_window = view<typename A::element_type, A::rank>;
template <windowed A>
using device_window = device_view<typename A::element_type, A::rank>;

/// What `together` gives: tensors that one function is to work on.
template <windowed... Args>
class group {
public:
    explicit group(const Args&... args) noexcept : tensors_{&static_cast<const tensor_ref&>(args)...} {}

    /// The one place they can all be worked on, or which of them is elsewhere.
    [[nodiscard]] result<memory_space> place() const noexcept {
        std::size_t leader = 0;
        while (leader < count && tensors_[leader]->device().is_host_accessible()) ++leader;
        if (leader == count) return memory_space::host;
        const device where = tensors_[leader]->device();
        for (std::size_t i = 0; i < count; ++i) {
            // Within reach is a device's own memory, and pinned or managed memory of its kind.
            const device at = tensors_[i]->device();
            if (at == where || (at.is_host_accessible() && at.serves(where.type))) continue;
            return refused("device", "not where the others are", at, where)
                .of_tensor(i + 1)
                .of_shape(tensors_[i]->shape().data())
                .with_advice("move all of them to one device, or all to the CPU");
        }
        return memory_space::accelerator;
    }

    /// Calls `fn` with a window on each of them.
    template <class R, class... Windows, class Fn>
    [[nodiscard]] result<R> call(Fn& fn) const {
        return [&]<std::size_t... I>(std::index_sequence<I...>) -> result<R> {
            std::tuple<result<Windows>...> opened{Windows::from(*tensors_[I])...};
            const error* const unmet[] = {std::get<I>(opened) ? nullptr : &std::get<I>(opened).error()...};
            for (std::size_t i = 0; i < count; ++i)
                if (unmet[i] != nullptr) return count == 1 ? *unmet[i] : unmet[i]->of_tensor(i + 1);
            return detail::call<R>(fn, *std::get<I>(opened)...);
        }(std::index_sequence_for<Windows...>{});
    }

private:
    static constexpr std::size_t count = sizeof...(Args);
    std::array<const tensor_ref*, count> tensors_;
};
}  // namespace detail

/// Tensors for `dispatch` to take at once: arrays, and whatever is `typed`. Borrows them.
template <detail::windowed... Args>
    requires(sizeof...(Args) != 0)
[[nodiscard]] detail::group<Args...> together(const Args&... args) noexcept {
    return detail::group<Args...>(args...);
}
template <class... Args>
void together(const Args&...) TENON_DELETED("together takes arrays, and tensors as tenon::typed<T, Rank>(t)");

/// If the host can read all of them, the function runs that takes a `view` of each; if one accelerator can,
/// with its memory, or pinned or managed memory, the one that takes a `device_view` of each. An error names
/// the first of several that is elsewhere, or that is not what its window wants, counted from 1.
template <class... Args, class... Fns>
[[nodiscard]] auto dispatch(const detail::group<Args...>& tensors, Fns... fns) {
    detail::overloaded<Fns...> chosen{std::move(fns)...};
    using Chosen = decltype(chosen)&;
    static_assert(std::is_invocable_v<Chosen, detail::host_window<Args>...>,
                  "dispatch: no function takes the host view");
    static_assert(std::is_invocable_v<Chosen, detail::device_window<Args>...>,
                  "dispatch: no function takes the device_view");
    using R = std::invoke_result_t<Chosen, detail::host_window<Args>...>;
    static_assert(std::is_same_v<R, std::invoke_result_t<Chosen, detail::device_window<Args>...>>,
                  "dispatch: the functions must return the same type");
    const result<memory_space> place = tensors.place();
    if (!place) return result<R>(place.error());
    if (*place == memory_space::host) return tensors.template call<R, detail::host_window<Args>...>(chosen);
    return tensors.template call<R, detail::device_window<Args>...>(chosen);
}

/// Host-accessible memory (CPU, pinned, managed) goes to the function that takes a `view<T, Rank>`, any
/// accelerator to the one that takes a `device_view<T, Rank>`. Nothing is copied or moved. Both functions
/// must return the same type; the error says which constraint of the window was not met.
template <class T = const void, int Rank = dynamic_rank, class... Fns>
[[nodiscard]] auto dispatch(const tensor_ref& t, Fns... fns) {
    return dispatch(together(typed<T, Rank>(t)), std::move(fns)...);
}

// --- element types ----------------------------------------------------------------------------------

/// Calls `fn(std::type_identity<T>{})` with the first of `Ts` that is the tensor's element type. The calls
/// must all return the same type. An error, which Python sees as TypeError, says what is taken and what came.
template <element First, element... Rest, class Fn>
[[nodiscard]] auto dispatch_dtype(const tensor_ref& t, Fn fn) {
    using R = std::invoke_result_t<Fn&, std::type_identity<First>>;
    result<R> out = error{};
    const auto attempt = [&]<class T>(std::type_identity<T> tag) {
        if (t.dtype() != dtype_of<T>) return false;
        out = detail::call<R>(fn, tag);
        return true;
    };
    if (!(attempt(std::type_identity<First>{}) || ... || attempt(std::type_identity<Rest>{}))) [[unlikely]] {
        static constexpr dtype taken[] = {dtype_of<First>, dtype_of<Rest>...};
        out = not_taken("this function takes", taken, 1 + sizeof...(Rest), t.dtype())
                  .of_shape(t.shape().data());
    }
    return out;
}

}  // namespace tenon
