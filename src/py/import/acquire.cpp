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

/// What a borrowing call of the table has not taken, and what is not borrowed so: NumPy's struct is read
/// where it lies, and all else climbs.
TENON_COLD [[nodiscard]] inline bool acquire_otherwise(PyObject* obj, bool has_struct, bool writable,
                                                       acquired& out) noexcept {
    interpreter* const home = has_struct ? interpreter::current() : nullptr;
    if (home != nullptr && numpy::take(obj, home, out) == outcome::taken) return true;
    return climb(obj, plain_import, writable, out);
}

TENON_FAST TENON_INLINE bool acquire(PyObject* obj, bool writable, acquired& out) noexcept {
    exchange::table_terms terms;
    if (out.owning || !exchange::common_terms::find(Py_TYPE(obj), terms)) {
        const type_plan* const plan = find_plan_of(obj);
        if constexpr (finding_runs_code) out.ran_code = true;
        if (plan == nullptr || out.owning || !plan->lends_plainly())
            return acquire_otherwise(obj, plan != nullptr && plan->numpy_struct && !plan->masked, writable,
                                     out);
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
