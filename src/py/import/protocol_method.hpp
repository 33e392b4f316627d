// src/py/import/protocol_method.hpp: calling a method of a protocol, wherever an object has it.
#pragma once

#include "../library/all.hpp"
#include "type_plan.hpp"

namespace tenon::py {

/// Calls a method that may be a plain one, a property, an instance attribute or nothing. `args[0]` is the
/// object. `found` tells absence (also a method set to None) from a call that failed.
[[nodiscard]] inline ref call_protocol_method(attribute_place place, PyObject* name, PyObject* const* args,
                                              PyObject* keywords, bool& found) noexcept {
    found = place != attribute_place::nowhere;
    if (!found) return {};
    if (place == attribute_place::method) return ref::take(call::keyword_method(name, args, keywords));
    PyObject* got = nullptr;
    const int there = call::optional_attr(args[0], name, &got);
    const ref bound = ref::take(got);
    if (there < 0) return {};
    found = there > 0 && bound.get() != Py_None;
    if (!found) return {};
    return ref::take(call::keyword_call(bound.get(), args + 1, keywords));
}

}  // namespace tenon::py
