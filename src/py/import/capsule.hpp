// src/py/import/capsule.hpp: taking over a DLPack capsule, only when what is inside is sound.
#pragma once

#include <tenon/py/import.hpp>
#include "../library/all.hpp"
#include "attempt.hpp"
#include "outcome.hpp"

namespace tenon::py {

/// How a capsule is to be taken.
struct capsule_terms {
    request wanted = {};     ///< what does not meet it is refused as well
    bool only_look = false;  ///< the capsule stays as it was, and nothing keeps the memory
};

/// Validates what the capsule holds, renames it, owns it: in this order, so that a capsule that is refused
/// stays alive with its producer and one that is taken cannot be taken again. No Python code runs in between.
[[nodiscard]] inline outcome take_capsule(PyObject* capsule, const import_options& options, interpreter* home,
                                          acquired& out, const capsule_terms& terms = {}) noexcept {
    const critical_section alone(capsule);
    const char* const name = PyCapsule_GetName(capsule);
    const auto is_named = [&](const char* expected) {
        return name != nullptr && std::strcmp(name, expected) == 0;
    };
    const bool versioned = is_named(capsule_versioned);
    if (!versioned && !is_named(capsule_legacy)) {
        PyErr_Clear();  // an invalid capsule sets one when asked for its name
        if (is_named(capsule_used_legacy) || is_named(capsule_used_versioned))
            return refused("capsule", "it has been consumed already")
                .with_advice("a capsule can be imported once; ask the producer for a new one");
        return refused("capsule", "its name is not that of a DLPack capsule")
            .with_advice("expected \"dltensor\" or \"dltensor_versioned\"");
    }
    void* const managed = PyCapsule_GetPointer(capsule, name);
    if (managed == nullptr) {
        PyErr_Clear();
        return malformed("capsule", "it holds a null pointer");
    }

    foreign received = versioned ? foreign(static_cast<abi::managed_tensor_versioned*>(managed))
                                 : foreign(static_cast<abi::managed_tensor*>(managed));
    const auto seen = received.describe();
    received.disown();  // it is the capsule's until the name is changed
    if (!seen) return seen.error();
    if (!options.is_met_by(device(seen->tensor.device)))
        return refused("device", "the data is not on the device asked for", seen->tensor.device.device_type,
                       options.to.value_or(device{}).type);
    const bool is_trusted = versioned || options.trust_legacy;
    if (auto ok = out.admit(seen->tensor, is_trusted ? seen->flags : seen->flags | abi::flag::read_only,
                            seen->version);
        !ok)
        return ok;
    out.add_marks(versioned ? tenon::detail::marks_of(static_cast<abi::managed_tensor_versioned*>(managed))
                            : tenon::detail::marks_of(static_cast<abi::managed_tensor*>(managed)));
    // Whoever handed it out as a legacy struct lets others have it so; but what a caller trusts to be
    // writable, and makes read-only, stays read-only.
    if (!is_trusted) out.allow_legacy();
    if (terms.only_look) return outcome::taken;
    if (options.copy == false && out.is_copied())
        return refused("flags", "copy=False was asked for and the producer made a copy");
    if (auto met = check(out, terms.wanted); !met) return met;
    if (PyCapsule_SetName(capsule, versioned ? capsule_used_versioned : capsule_used_legacy) != 0)
        return outcome::raised;
    out.owner = detail::keep_managed(managed, versioned, home);
    return outcome::taken;
}

/// The rung for a bare capsule handed over in place of an array. One that is refused, also for being
/// read-only where `writable` is asked for, stays usable for somebody else.
[[nodiscard]] inline outcome take_bare_capsule(attempt& a) noexcept {
    // A copy is writable, whatever it is made of.
    return take_capsule(a.obj, a.options, &a.here, a.out,
                        {{.writable = a.writable && a.options.copy != true}, a.out.looking});
}

}  // namespace tenon::py
