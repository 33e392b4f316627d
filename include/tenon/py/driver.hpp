// tenon/py/driver.hpp: waiting for a device, without the GIL.
#pragma once

#include <tenon/abi/dlpack.hpp>
#include <tenon/core/cuda_driver.hpp>
#include <tenon/core/device.hpp>
#include <tenon/core/error.hpp>
#include <tenon/core/foreign_code.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>

namespace tenon::py::detail {

/// Runs `fn(driver)` without the GIL, because the driver may block.
template <class Fn>
[[nodiscard]] result<void> ask_driver(const cuda_api::driver& driver, Fn&& fn) noexcept {
    return foreign_code([&] {
        PyThreadState* const released = PyEval_SaveThread();
        const result<void> done = fn(driver);
        PyEval_RestoreThread(released);
        return done;
    });
}

/// Memory that a device writes to as well is complete only once the device is done; false with an exception
/// set on failure. Where there is no device nothing can be pending.
[[nodiscard]] inline bool finish_device_work(device where) noexcept {
    if (where.type != abi::device_code::cuda_host && where.type != abi::device_code::cuda_managed)
        return true;
    const cuda_api::driver* const driver = cuda_api::driver::get();
    if (driver == nullptr || !driver->has_device()) return true;
    const auto done = ask_driver(*driver, [](const cuda_api::driver& d) { return d.synchronize(); });
    if (!done) raise(done.error(), "tenon: ");
    return done.has_value();
}

}  // namespace tenon::py::detail
