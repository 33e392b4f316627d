// src/py/import/acquire.cpp: the way in for a plain import: types seen before go straight to their rung.
#include "all.hpp"

namespace tenon::py {

namespace detail {

TENON_INLINE void raise_unmet(const error& e, PyObject* obj) noexcept try {
    if (attached_thread_state() == nullptr) return raise_detached();
    raise(e, "tenon: " + refusals::type_name(obj) + ": ");
} catch (...) {
    PyErr_NoMemory();
}

/// Nothing in particular is asked for. Not on the stack of those who climb.
TENON_PRIVATE inline constexpr import_options plain_import{};

/// The rung that a plain import of the type's objects begins with; null when the ladder has to be climbed.
[[nodiscard]] inline const rung* first_rung(const type_plan& plan) noexcept {
    if (plan.table != nullptr) return &ladder::by<rung_id::exchange_table>();
    if (plan.route.on_cuda) return &ladder::by<rung_id::dlpack_method>();
    if (plan.numpy_struct) return plan.masked ? nullptr : &ladder::by<rung_id::numpy_struct>();
    if (plan.route.prefer_buffer) return &ladder::by<rung_id::buffer_protocol>();
    return plan.has_buffer && plan.speaks_buffer_alone() ? &ladder::by<rung_id::buffer_protocol, 1>()
                                                         : nullptr;
}

/// Tries the rung that the type's objects are taken by, and then the others.
TENON_COLD [[nodiscard]] inline bool acquire_by_its_rung(PyObject* obj, const type_plan& known, bool writable,
                                                         acquired& out) noexcept {
    const rung* const first = first_rung(known);
    if (first == nullptr) return climb(obj, plain_import, writable, out);
    tried_already tried{first->id, outcome::raised, {}};
    if (first == &ladder::by<rung_id::numpy_struct>()) {  // which runs no code of others
        if (interpreter* const home = interpreter::current()) tried.answer = numpy::take(obj, home, out);
    } else {
        const type_plan plan = known;  // a copy: foreign code runs from here on
        interpreter* const home = interpreter::current();
        const nesting_level level;
        if (home == nullptr || !level) return false;
        out.ran_code = true;
        attempt a{obj, plan, plain_import, writable, *home, out};
        tried.answer = first->take(a);
        tried.swallowed = std::move(a.swallowed);
        if (tried.answer == outcome::taken && plan.hands_out_legacy) out.allow_legacy();
        if (tried.answer == outcome::refused && a.left_to_arrow)
            return climb(obj, plain_import, writable, out);
    }
    if (tried.answer == outcome::taken) [[likely]]
        return true;
    if (tried.answer == outcome::raised) return (reword_for_torch(obj), false);
    return climb(obj, plain_import, writable, out, tried.answer == outcome::refused ? &tried : nullptr);
}

/// What is left to do when an exchange table has not lent the tensor.
TENON_COLD [[nodiscard]] inline bool climb_past_table(const outcome& answer, PyObject* obj, bool writable,
                                                      acquired& out) noexcept {
    if (answer == outcome::raised) return (reword_for_torch(obj), false);
    tried_already tried{rung_id::exchange_table, answer, {}};
    return climb(obj, plain_import, writable, out, &tried);
}

/// Borrows by a table that is not known to keep to itself, so that its function may come back here, or from
/// an object that must be asked.
TENON_COLD [[nodiscard]] inline bool acquire_nested(PyObject* obj, const type_plan& plan, bool writable,
                                                    acquired& out) noexcept {
    const bool legacy = plan.hands_out_legacy;  // read before foreign code runs
    outcome answer = outcome::raised;
    {
        std::optional<nesting_level> level;  // a table that keeps to itself does not need one
        if (!plan.only_fills) level.emplace();
        if (!level || *level)
            answer = !plan.guards.asked && exchange::lends(plan, writable)
                         ? exchange::borrow_plainly(obj, exchange::detail::terms_of(plan), writable, out)
                         : exchange::take_carefully(obj, plan, writable, out);
    }
    if (answer != outcome::taken) [[unlikely]]
        return climb_past_table(answer, obj, writable, out);
    if (legacy) out.allow_legacy();
    return true;
}

TENON_FAST TENON_INLINE bool acquire(PyObject* obj, bool writable, acquired& out) noexcept {
    exchange::detail::table_terms terms;
    if (out.owning || !exchange::detail::common_terms::find(Py_TYPE(obj), terms)) {
        const type_plan* const plan = find_plan_of(obj);
        if constexpr (finding_runs_code) out.ran_code = true;
        if (plan == nullptr) [[unlikely]]
            return climb(obj, plain_import, writable, out);
        if (plan->table == nullptr || out.owning) return acquire_by_its_rung(obj, *plan, writable, out);
        if (!plan->only_fills || plan->guards.asked || !exchange::lends(*plan, writable))
            return acquire_nested(obj, *plan, writable, out);
        terms = exchange::detail::terms_of(*plan);
    }
    const outcome answer = exchange::borrow_plainly(obj, terms, writable, out);
    if (answer == outcome::taken) [[likely]]
        return true;
    return climb_past_table(answer, obj, writable, out);
}

}  // namespace detail
}  // namespace tenon::py
