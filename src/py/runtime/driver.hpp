// src/py/runtime/driver.hpp: asking a GPU's driver, which may block, without the GIL.
#pragma once

#include "base.hpp"
#include "interpreter.hpp"

namespace tenon::py::detail {

/// What `fn()` returns, run without the GIL, unless letting others run might move the memory that is spoken
/// of.
template <class Fn>
[[nodiscard]] auto without_gil_if(bool may_run, Fn&& fn) noexcept {
    return may_run ? without_gil(fn) : fn();
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

}  // namespace tenon::py::detail
