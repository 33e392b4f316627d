// src/py/import/acquire.cpp: the way in for a plain import: types seen before go straight to their rung.
#include <optional>

#include <tenon/py/import.hpp>

#include "../runtime/interpreter.hpp"
#include "../runtime/nesting.hpp"
#include "ladder.hpp"

namespace tenon::py {

TENON_COLD TENON_INLINE result<void> acquired::admit(const abi::dl_tensor& t, std::uint64_t flags,
                                                     abi::dl_version version) noexcept {
    return admit_here(t, flags, version);
}

namespace detail {

TENON_INLINE void raise_unmet(const error& e, PyObject* obj) noexcept try {
    if (attached_thread_state() == nullptr) return raise_detached();
    raise(e, "tenon: " + refusals::type_name(obj) + ": ");
} catch (...) {
    PyErr_NoMemory();
}

/// Nothing in particular is asked for. Not on the stack of those who climb.
TENON_PRIVATE inline constexpr import_options plain_import{};

/// Tries the rung that the type's objects are taken by, unless they are borrowed by a table.
TENON_COLD [[nodiscard]] inline rung_result take_by_its_rung(PyObject* obj, const type_plan& plan,
                                                             bool writable, acquired& out,
                                                             tried_already& tried) noexcept {
    interpreter* const home = interpreter::current();
    if (home == nullptr) return rung_result::raised;
    if (plan.direct == direct_way::numpy_struct) {
        tried.which = rung::numpy_struct;
        return numpy::take(obj, home, out, tried.why);
    }
    out.ran_code = true;
    const nesting_level level;
    if (!level) return rung_result::raised;
    switch (plan.direct) {
        case direct_way::exchange_table:
            tried.which = rung::exchange_table;
            return exchange::own(obj, plan, writable, *home, out, tried.why);
        case direct_way::buffer:
            tried.which = rung::buffer_protocol;
            return plan.prefer_buffer
                       ? speculate_on_buffer(obj, plan.immutable, *home, out, tried.why, tried.swallowed)
                       : buffer::take(obj, plan.immutable, *home, out, tried.why);
        case direct_way::plain_dlpack: {
            const type_plan known = plan;  // a copy: foreign code runs
            tried.which = rung::count;     // the ladder asks it again, in other words
            return dlpack::take_plainly(obj, known, {}, *home, out, tried.why);
        }
        case direct_way::numpy_struct:
        case direct_way::none:
            break;
    }
    return rung_result::absent;
}

/// Tries the rung that the type's objects are taken by, and then the others.
TENON_COLD [[nodiscard]] inline bool acquire_by_its_rung(PyObject* obj, const type_plan& plan, bool writable,
                                                         acquired& out) noexcept {
    tried_already tried;
    const bool legacy = plan.hands_out_legacy;  // read before foreign code runs
    const rung_result answer = take_by_its_rung(obj, plan, writable, out, tried);
    if (answer == rung_result::taken && legacy) out.allow_legacy();
    if (answer == rung_result::taken) [[likely]]
        return true;
    if (answer == rung_result::raised) return (reword_for_torch(obj), false);
    return climb(obj, plain_import, writable, out, answer == rung_result::refused ? &tried : nullptr);
}

/// What is left to do when an exchange table has not lent the tensor.
TENON_COLD [[nodiscard]] inline bool climb_past_table(rung_result answer, const error& why, PyObject* obj,
                                                      bool writable, acquired& out) noexcept {
    if (answer == rung_result::raised) return (reword_for_torch(obj), false);
    tried_already tried{rung::exchange_table, why, {}};
    return climb(obj, plain_import, writable, out, &tried);
}

/// Borrows by a table that is not known to keep to itself, so that its function may come back here, or from
/// an object that must be asked.
TENON_COLD [[nodiscard]] inline bool acquire_nested(PyObject* obj, const type_plan& plan, bool writable,
                                                    acquired& out) noexcept {
    error why;
    const bool legacy = plan.hands_out_legacy;  // read before foreign code runs
    rung_result answer = rung_result::raised;
    {
        std::optional<nesting_level> level;  // a table that keeps to itself does not need one
        if (!plan.only_fills) level.emplace();
        if (!level || *level) answer = exchange::borrow(obj, plan, writable, out, why);
    }
    if (answer != rung_result::taken) [[unlikely]]
        return climb_past_table(answer, why, obj, writable, out);
    if (legacy) out.allow_legacy();
    return true;
}

TENON_INLINE bool acquire(PyObject* obj, bool writable, acquired& out) noexcept {
    exchange::detail::table_terms terms;
    if (out.owning || !exchange::detail::common_terms::find(Py_TYPE(obj), terms)) {
        const type_plan* const plan = find_plan_of(obj);
        if constexpr (finding_runs_code) out.ran_code = true;
        if (plan == nullptr || plan->direct == direct_way::none) [[unlikely]]
            return climb(obj, plain_import, writable, out, nullptr, nullptr);
        if (plan->direct != direct_way::exchange_table || out.owning)
            return acquire_by_its_rung(obj, *plan, writable, out);
        if (!plan->only_fills || !exchange::lends_plainly(*plan, writable))
            return acquire_nested(obj, *plan, writable, out);
        terms = exchange::detail::terms_of(*plan);
    }
    error why;  // written only if it refuses
    const rung_result answer = exchange::borrow_plainly(obj, terms, writable, out, why);
    if (answer == rung_result::taken) [[likely]]
        return true;
    return climb_past_table(answer, why, obj, writable, out);
}

}  // namespace detail
}  // namespace tenon::py
