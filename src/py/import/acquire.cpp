// src/py/import/acquire.cpp: the way in for a plain import: what a known type lends at once, and all else.
#include "all.hpp"

namespace tenon::py::detail {

TENON_INLINE void raise_unmet(const error& e, PyObject* obj) noexcept try {
    if (attached_thread_state() == nullptr) return raise_detached();
    raise(e, "tenon: " + refusals::type_name(obj) + ": ");
} catch (...) {
    PyErr_NoMemory();
}

/// Nothing in particular is asked for. Not on the stack of those who climb.
TENON_PRIVATE inline constexpr import_options plain_import{};

/// What is not lent by a table. NumPy's struct is read where it lies, and a buffer asked of what gives no
/// more, or gives it best, before the climb.
TENON_COLD [[nodiscard]] inline bool acquire_otherwise(PyObject* obj, const type_plan& known, bool writable,
                                                       acquired& out) noexcept {
    interpreter* const home = interpreter::current();
    if (home == nullptr) return false;
    std::optional<tried_buffer> tried;
    if (known.numpy_struct && !known.masked) {
        if (numpy::take(obj, home, out) == outcome::taken) return true;
    } else if (known.route.prefer_buffer || known.speaks_buffer_alone()) {
        const type_plan plan = known;  // a copy: foreign code runs from here on
        const nesting_level level;
        if (!level) return false;
        out.ran_code = true;
        attempt a{obj, plan, plain_import, writable, *home, out};
        const outcome got = plan.route.prefer_buffer ? take_buffer_if_it_can(a) : buffer::take(a);
        if (got == outcome::raised) return false;
        if (got == outcome::taken) {
            if (plan.hands_out_legacy) out.allow_legacy();
            return true;
        }
        tried.emplace(got, std::move(a.swallowed));
    }
    return climb(obj, plain_import, writable, out, tried ? &*tried : nullptr);
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
