// src/py/import/settle.hpp: what was acquired is kept, copied or fetched, as an import was asked to.
#pragma once

#include <tenon/py/import.hpp>
#include "../library/all.hpp"
#include "placing.hpp"

namespace tenon::py::detail {

/// Whatever was acquired, kept, copied or fetched as the options say; nullopt with an exception set.
[[nodiscard]] inline std::optional<tensor> settle(PyObject* obj, acquired& got,
                                                  const import_options& options) noexcept {
    const bool copies = options.copy == true && (!got.is_copied() || got.is_read_only());
    // What the host is to read, the device must have written.
    if ((copies || options.wants_host()) && !finish_device_work(got.device())) return std::nullopt;
    if (options.wants_host() && got.device().has_streams())
        return unless_failed(without_gil([&] { return gpu::fetch(got); }));
    if (copies) {
        if (!got.device().has_streams()) return copy_released(got);
        return copied_on_device(got, got.owner);
    }
    if (options.writable) {
        if (auto met = check(got, {.writable = true}); !met) {
            raise_unmet(met.error(), obj);
            return std::nullopt;
        }
    }
    std::optional<tensor> kept;
    if (auto ok = tensor::keep(got, got.owner, kept); !ok) raise(ok.error());
    return kept;
}

}  // namespace tenon::py::detail
