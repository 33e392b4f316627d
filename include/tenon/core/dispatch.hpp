// tenon/core/dispatch.hpp: run the right function for where a tensor lives and for what it is made of.
#pragma once

#include <type_traits>
#include <utility>

#include <tenon/core/device_view.hpp>
#include <tenon/core/error.hpp>
#include <tenon/core/tensor_ref.hpp>
#include <tenon/core/view.hpp>

namespace tenon {

namespace detail {
template <class... Fns>
struct overloaded : Fns... {
    using Fns::operator()...;
};
template <class... Fns>
overloaded(Fns...) -> overloaded<Fns...>;

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
}  // namespace detail

/// Host-accessible memory (CPU, pinned, managed) goes to the function that takes a `view<T, Rank>`, any
/// accelerator to the one that takes a `device_view<T, Rank>`. Nothing is copied or moved. Both functions
/// must return the same type; the error says which constraint of the window was not met.
template <class T = const void, int Rank = dynamic_rank, class... Fns>
[[nodiscard]] auto dispatch(const tensor_ref& t, Fns... fns) {
    detail::overloaded chosen{std::move(fns)...};
    using host = view<T, Rank>;
    using accelerator = device_view<T, Rank>;
    static_assert(std::is_invocable_v<decltype(chosen)&, host>, "dispatch: no function takes the host view");
    static_assert(std::is_invocable_v<decltype(chosen)&, accelerator>,
                  "dispatch: no function takes the device_view");
    using R = std::invoke_result_t<decltype(chosen)&, host>;
    static_assert(std::is_same_v<R, std::invoke_result_t<decltype(chosen)&, accelerator>>,
                  "dispatch: the functions must return the same type");
    if (t.device().is_host_accessible()) {
        auto window = host::from(t);
        return window ? detail::call<R>(chosen, *window) : result<R>(window.error());
    }
    auto window = accelerator::from(t);
    return window ? detail::call<R>(chosen, *window) : result<R>(window.error());
}

/// Calls `fn(std::type_identity<T>{})` with the first of `Ts` that is the tensor's element type. The calls
/// must all return the same type.
template <element First, element... Rest, class Fn>
[[nodiscard]] auto dispatch_dtype(const tensor_ref& t, Fn fn) {
    using R = std::invoke_result_t<Fn&, std::type_identity<First>>;
    result<R> out =
        refused("dtype", "none of the element types this function takes (type code)", t.dtype().code);
    const auto attempt = [&]<class T>(std::type_identity<T> tag) {
        if (t.dtype() != dtype_of<T>) return false;
        out = detail::call<R>(fn, tag);
        return true;
    };
    (void)(attempt(std::type_identity<First>{}) || ... || attempt(std::type_identity<Rest>{}));
    return out;
}

}  // namespace tenon
