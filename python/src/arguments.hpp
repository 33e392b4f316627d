// python/src/arguments.hpp: reading the keyword arguments of the module's functions, each with an error that
// names it.
#pragma once

#include <cstdint>
#include <optional>

#include <tenon/core/device.hpp>
#include <tenon/core/dtype_names.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/ref.hpp>

namespace tenon::module {

/// The keywords both `asdlpack` and `__dlpack__` are made of; None and absent are the same.
struct keywords {
    std::optional<std::intptr_t> stream;
    std::optional<device> where;
    std::optional<bool> copy;
    std::optional<long> major;  ///< of `max_version`
    bool writable = false;
    bool trust_legacy = false;
};

/// Reads `names[i] = values[i]` pairs whose names are in `allowed` (a null-terminated list); false with
/// TypeError set otherwise.
[[nodiscard]] bool read_keywords(const char* function, const char* const* allowed, PyObject* names,
                                 PyObject* const* values, keywords& out) noexcept;

}  // namespace tenon::module
