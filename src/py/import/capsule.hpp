// src/py/import/capsule.hpp: DLPack capsules: their names, and taking one over only when what is inside is
// sound.
#pragma once

#include <cstring>

#include <tenon/py/acquired.hpp>
#include <tenon/py/import.hpp>
#include <tenon/py/python.hpp>
#include <tenon/tensor/foreign.hpp>
#include <tenon/tensor/request.hpp>
#include "../../tensor/managed.hpp"
#include "../runtime/interpreter.hpp"
#include "../runtime/keep.hpp"
#include "rung.hpp"

namespace tenon::py {

// A capsule keeps the pointer, not the characters: the names are static (F10).
inline constexpr const char* capsule_legacy = "dltensor";
inline constexpr const char* capsule_versioned = "dltensor_versioned";
inline constexpr const char* capsule_used_legacy = "used_dltensor";
inline constexpr const char* capsule_used_versioned = "used_dltensor_versioned";
inline constexpr const char* capsule_exchange_api = "dlpack_exchange_api";

/// Validates what the capsule holds, renames it, owns it: in this order, so that a capsule that is refused
/// stays alive with its producer and one that is taken cannot be taken again. No Python code runs in between.
/// What does not meet `wanted` is refused as well. With `only_look` the first step is the last: the capsule
/// stays as it was, and nothing keeps the memory.
[[nodiscard]] inline rung_result take_capsule(PyObject* capsule, const import_options& options,
                                              interpreter* home, acquired& out, error& why,
                                              const request& wanted = {}, bool only_look = false) noexcept {
    const critical_section alone(capsule);
    const char* const name = PyCapsule_GetName(capsule);
    const auto is_named = [&](const char* expected) {
        return name != nullptr && std::strcmp(name, expected) == 0;
    };
    const bool versioned = is_named(capsule_versioned);
    if (!versioned && !is_named(capsule_legacy)) {
        PyErr_Clear();  // an invalid capsule sets one when asked for its name
        const bool used = is_named(capsule_used_legacy) || is_named(capsule_used_versioned);
        why = used ? refused("capsule", "it has been consumed already")
                         .with_advice("a capsule can be imported once; ask the producer for a new one")
                   : refused("capsule", "its name is not that of a DLPack capsule")
                         .with_advice("expected \"dltensor\" or \"dltensor_versioned\"");
        return rung_result::refused;
    }
    void* const managed = PyCapsule_GetPointer(capsule, name);
    if (managed == nullptr) {
        PyErr_Clear();
        why = malformed("capsule", "it holds a null pointer");
        return rung_result::refused;
    }

    foreign received = versioned ? foreign(static_cast<abi::managed_tensor_versioned*>(managed))
                                 : foreign(static_cast<abi::managed_tensor*>(managed));
    const auto seen = received.describe();
    received.disown();  // it is the capsule's until the name is changed
    if (!seen) {
        why = seen.error();
        return rung_result::refused;
    }
    if (!options.is_met_by(device(seen->tensor.device))) {
        why = refused("device", "the data is not on the device asked for", seen->tensor.device.device_type,
                      options.to.value_or(device{}).type);
        return rung_result::refused;
    }
    const std::uint64_t flags =
        versioned || options.trust_legacy ? seen->flags : seen->flags | abi::flag::read_only;
    if (auto ok = out.admit(seen->tensor, flags, seen->version); !ok) {
        why = ok.error();
        return rung_result::refused;
    }
    out.add_marks(versioned ? tenon::detail::marks_of(static_cast<abi::managed_tensor_versioned*>(managed))
                            : tenon::detail::marks_of(static_cast<abi::managed_tensor*>(managed)));
    // Whoever handed it out as a legacy struct lets others have it so; but what a caller trusts to be
    // writable, and makes read-only, stays read-only.
    if (!versioned && !options.trust_legacy) out.allow_legacy();
    if (only_look) return rung_result::taken;
    if (options.copy == false && out.is_copied()) {
        why = refused("flags", "copy=False was asked for and the producer made a copy");
        return rung_result::refused;
    }
    if (auto met = check(out, wanted); !met) {
        why = met.error();
        return rung_result::refused;
    }
    if (PyCapsule_SetName(capsule, versioned ? capsule_used_versioned : capsule_used_legacy) != 0)
        return rung_result::raised;
    out.owner = detail::keep_managed(managed, versioned, home);
    return rung_result::taken;
}

}  // namespace tenon::py
