// src/py/import/acquire.cpp: the way in for a plain import: what a known type lends at once, and all else.
#include "all.hpp"

namespace tenon::py::detail {

TENON_INLINE void raise_unmet(const error& e, PyObject* obj) noexcept try {
    if (attached_thread_state() == nullptr) return raise_detached();
    raise(e, sentence({"tenon: ", refusals::type_name(obj), ": "}));
} catch (...) {
    PyErr_NoMemory();
}

/// Nothing in particular is asked for. Not on the stack of those who climb.
TENON_PRIVATE inline constexpr import_options plain_import{};

/// The rung that a plain import of the type's objects begins with; none where the ladder has to be climbed.
[[nodiscard]] inline first_look first_look_at(const type_plan& plan) noexcept {
    if (plan.table != nullptr) return {&ladder::exchange_table, exchange::take};
    if (plan.route.on_cuda) return {&ladder::dlpack_method, take_dlpack};
    if (plan.route.prefer_buffer) return {&ladder::buffer_protocol, take_buffer_if_it_can};
    if (plan.speaks_buffer_alone()) return {&ladder::buffer_protocol, buffer::take};
    return {};
}

/// What is not lent without more ado: NumPy's struct, which is read where it lies, and what a known type's
/// objects are taken by.
TENON_COLD [[nodiscard]] inline bool acquire_otherwise(PyObject* obj, const type_plan& known, bool writable,
                                                       acquired& out) noexcept {
    interpreter* const home = interpreter::current();
    if (home == nullptr) return false;
    if (known.numpy_struct && !known.masked && numpy::take(obj, home, out) == outcome::taken) return true;
    first_look first = known.numpy_struct ? first_look{} : first_look_at(known);
    if (first.asked == nullptr) return climb(obj, plain_import, writable, out);
    {
        const type_plan plan = known;  // a copy: foreign code runs from here on
        const nesting_level level;
        if (!level) return false;
        out.ran_code = true;
        attempt a{obj, plan, plain_import, writable, *home, out};
        first.answer = first.take(a);
        if (first.answer == outcome::taken) {
            if (plan.hands_out_legacy) out.allow_legacy();
            return true;
        }
        first.swallowed = std::move(a.swallowed);
        first.left_to_arrow = std::move(a.left_to_arrow);
    }
    if (first.answer != outcome::raised) return climb(obj, plain_import, writable, out, &first);
    reword_for_torch(obj);
    return false;
}

TENON_FAST TENON_INLINE bool acquire(PyObject* obj, bool writable, acquired& out) noexcept {
    exchange::table_terms terms;
    if (out.owning || !exchange::common_terms::find(Py_TYPE(obj), terms)) {
        const type_plan* const plan = find_plan_of(obj);
        if constexpr (finding_runs_code) out.ran_code = true;
        if (plan == nullptr) [[unlikely]]
            return climb(obj, plain_import, writable, out);
        if (out.owning || !plan->lends_plainly()) return acquire_otherwise(obj, *plan, writable, out);
        terms = exchange::terms_of(*plan);
    }
    const outcome answer = exchange::borrow_plainly(obj, terms, writable, out);
    if (answer == outcome::taken) [[likely]]
        return true;
    if (answer != outcome::raised) return climb(obj, plain_import, writable, out);
    reword_for_torch(obj);
    return false;
}

}  // namespace tenon::py::detail

namespace tenon::py {

TENON_COLD TENON_INLINE bool note_lent_stream(detail::table_stream ask, acquired& got) noexcept try {
    return detail::note_told_stream(ask, true, got);
} catch (...) {
    raise_caught();
    return false;
}

}  // namespace tenon::py
