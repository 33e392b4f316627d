// src/py/import/attempt.hpp: one import under way: what every rung of the ladder is given.
#pragma once

#include <tenon/py/import.hpp>
#include "../library/all.hpp"
#include "type_plan.hpp"

namespace tenon::py {

/// What an import asks, and where it puts what it finds. `plan` is the caller's own copy: rungs run foreign
/// code.
struct attempt {
    PyObject* obj;
    const type_plan& plan;
    const import_options& options;
    bool writable;
    interpreter& here;
    acquired& out;

    // What rungs leave behind, for when nothing better comes.
    ref swallowed{};      ///< raised by a rung that was tried only because it is quick
    ref left_to_arrow{};  ///< raised by `__dlpack__` of an object that speaks Arrow, too

    /// Rungs that know no other place are left out where there is a better one to ask.
    [[nodiscard]] bool host_will_do() const noexcept { return !options.to || options.wants_host(); }
    /// Lets go of what was found, and refuses it.
    [[nodiscard]] error give_up(const error& why) noexcept {
        out.owner.reset();
        return why;
    }
};

}  // namespace tenon::py
