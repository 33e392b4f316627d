// src/py/runtime/without_gil.hpp: what takes long, or may block, is done without the GIL: waiting, asking a
// GPU's driver, copying.
#pragma once

#include "base.hpp"

namespace tenon::py {

namespace detail {

/// What `fn()` returns, run without the GIL.
template <class Fn>
[[nodiscard]] auto without_gil(Fn&& fn) noexcept {
    return foreign_code([&] {
        PyThreadState* const released = PyEval_SaveThread();
        auto done = fn();
        PyEval_RestoreThread(released);
        return done;
    });
}

/// The same, unless letting others run might move the memory that is spoken of.
template <class Fn>
[[nodiscard]] auto without_gil_if(bool may_run, Fn&& fn) noexcept {
    return may_run ? without_gil(fn) : fn();
}

/// For what waits without knowing of Python. With the runtime on its way out no other thread gets to run
/// Python any more: there is nobody to let go of the GIL for.
inline void keep_off_gil(void (*wait)(void*) noexcept, void* what) noexcept {
    if (attached_thread_state() == nullptr || is_finalizing()) return wait(what);
    (void)without_gil([&] {
        wait(what);
        return true;
    });
}

/// Whether it succeeded; otherwise an exception is set.
[[nodiscard]] inline bool succeeded(const result<void>& done) noexcept {
    if (!done) raise(done.error(), "tenon: ");
    return done.has_value();
}

/// Memory that a device writes to as well is complete only once the device is done; false with an exception
/// set on failure. Where there is no device nothing can be pending.
[[nodiscard]] inline bool finish_device_work(device where, bool may_run = true) noexcept {
    if (where.is_cpu() || !where.is_host_accessible()) return true;
    return succeeded(without_gil_if(may_run, [&] { return gpu::finish_all_devices(where); }));
}

/// Below this a copy is over before another thread could have begun.
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

/// `copy_to_host`, letting other threads run meanwhile, which Ctrl-C can end; nullopt with an exception set
/// on failure. The memory behind `from` must be kept alive by the caller.
[[nodiscard]] inline std::optional<tensor> copy_released(const tensor_ref& from) noexcept {
    if (from.nbytes() < detail::copy_worth_a_switch) return copy_held(from);
    PyThreadState* released = PyEval_SaveThread();
    auto copied = copy_to_host(from, {&detail::no_signal_came, &released});
    foreign_code([&] { PyEval_RestoreThread(released); });
    return detail::unless_failed(std::move(copied));
}

}  // namespace tenon::py
