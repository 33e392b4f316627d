// src/py/export/find_maker.hpp: what makes arrays like an object, as its type's plan remembers it.
#pragma once

#include "../import/all.hpp"
#include "makers.hpp"

namespace tenon::py::detail {

TENON_COLD [[nodiscard]] inline std::optional<maker> find_maker(PyObject* like, interpreter& here) noexcept {
    const nesting_level level;
    type_plan plan;
    ref type;
    if (!level || !look_at_class(like, here, type, plan)) return std::nullopt;
    std::optional<maker> made(std::in_place, plan);
    if (!made->resolve(like, here, plan.numpy_struct)) return std::nullopt;
    made->note_in(plan, here);
    remember_plan(plan);  // dated before it was made: a change in between leaves it out of date
    return made;
}

/// Nullopt with an exception set on failure.
[[nodiscard]] inline std::optional<maker> maker_of(PyObject* like, interpreter& here) noexcept {
    const type_plan* const known = find_plan_of(like);
    if (known != nullptr && known->maker.kind != maker_kind::unresolved && known->maker.home == &here)
        [[likely]]
        return std::optional<maker>(std::in_place, *known);
    return find_maker(like, here);
}

}  // namespace tenon::py::detail
