// src/py/runtime/copy.hpp: a copy in host memory, made without the GIL, that Ctrl-C can end.
#pragma once

#include "base.hpp"
#include "exceptions.hpp"

namespace tenon::py {

namespace detail {

/// Below this the copy is over before another thread could have begun.
inline constexpr std::int64_t copy_worth_a_switch = std::int64_t{1} << 16U;

/// Looks for signals, on the thread that was released.
inline bool no_signal_came(void* saved) noexcept {
    auto** const released = static_cast<PyThreadState**>(saved);
    foreign_code([&] { PyEval_RestoreThread(*released); });
    const bool none = foreign_code([] { return PyErr_CheckSignals(); }) == 0;
    *released = PyEval_SaveThread();
    return none;
}

[[nodiscard]] inline std::optional<tensor> unless_failed(result<tensor>&& copied) noexcept {
    if (copied) return std::move(*copied);
    if (PyErr_Occurred() == nullptr) raise(copied.error(), "tenon: ");
    return std::nullopt;
}

}  // namespace detail

/// `copy_to_host` for memory that stays where it is only as long as no code of others runs; nullopt with an
/// exception set on failure.
[[nodiscard]] inline std::optional<tensor> copy_held(const tensor_ref& from) noexcept {
    return detail::unless_failed(copy_to_host(from));
}

/// `copy_to_host`, letting other threads run meanwhile; nullopt with an exception set on failure. The memory
/// behind `from` must be kept alive by the caller.
[[nodiscard]] inline std::optional<tensor> copy_released(const tensor_ref& from) noexcept {
    const auto made = [&] {
        if (from.nbytes() < detail::copy_worth_a_switch) return copy_to_host(from);
        PyThreadState* released = PyEval_SaveThread();
        auto copied = copy_to_host(from, {&detail::no_signal_came, &released});
        foreign_code([&] { PyEval_RestoreThread(released); });
        return copied;
    };
    return detail::unless_failed(made());
}

}  // namespace tenon::py
