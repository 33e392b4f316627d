// src/py/import/bare_capsule.hpp: the rung for a bare DLPack capsule handed over in place of an array.
#pragma once

#include <tenon/py/acquired.hpp>
#include <tenon/py/import.hpp>
#include <tenon/py/python.hpp>
#include "../runtime/interpreter.hpp"
#include "../runtime/keep.hpp"
#include "capsule.hpp"
#include "rung.hpp"

namespace tenon::py::bare_capsule {

/// Takes the capsule over; one that is refused, also for being read-only where `writable` is asked for, stays
/// usable for somebody else.
[[nodiscard]] inline rung_result take(PyObject* obj, const import_options& options, bool writable,
                                      interpreter& here, acquired& out, error& why) noexcept {
    if (!PyCapsule_CheckExact(obj)) return rung_result::absent;
    // A copy is writable, whatever it is made of.
    return take_capsule(obj, options, &here, out, why, {.writable = writable && options.copy != true},
                        out.looking);
}

}  // namespace tenon::py::bare_capsule
