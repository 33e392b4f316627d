// src/py/import/ladder.hpp: the import ladder: which protocols a type speaks, and the one by which an object
// is taken.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include <tenon/py/acquired.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/value/dtype_names.hpp>
#include "../library/current_stream.hpp"
#include "../library/frameworks.hpp"
#include "../library/torch_kinds.hpp"
#include "../library/torch_library.hpp"
#include "../runtime/interpreter.hpp"
#include "../runtime/nesting.hpp"
#include "array_interface.hpp"
#include "arrow.hpp"
#include "bare_capsule.hpp"
#include "buffer.hpp"
#include "cuda_array_interface.hpp"
#include "dlpack.hpp"
#include "exchange_api.hpp"
#include "numpy.hpp"
#include "placing.hpp"
#include "plan_cache.hpp"
#include "refusals.hpp"
#include "type_plan.hpp"

namespace tenon::py {

namespace detail {

/// Looks at a type once, every protocol of it. False with an exception set on failure. The caller holds the
/// type.
[[nodiscard]] inline bool make_plan(PyTypeObject* type, interpreter& here, type_plan& plan) noexcept {
    plan = type_plan{};
    plan.type = type;
    date_plan(plan, here);
    exchange::probe(type, here, plan);
    numpy::probe(type, here, plan);
    if (PyErr_Occurred() != nullptr) return false;  // interrupted
    dlpack::probe(type, here, plan);
    cuda_array_interface::probe(type, here, plan);
    array_interface::probe(type, here, plan);
    arrow::probe(type, here, plan);
    buffer::probe(type, plan);
    const framework_habits* const habits = habits_of(type);
    if (habits != nullptr) {
        plan.immutable = habits->immutable;
        plan.hands_out_legacy = hands_out_legacy(type, *habits) && plan.dlpack != attribute_place::nowhere;
        plan.arrow_first = has_class_named(type, habits->arrow_rather_for);
        plan.buffer_first = habits->buffer_first && plan.has_buffer;
        plan.prefer_buffer = plan.buffer_first;
        plan.dtype_first = habits->dtype_first;
        // A subclass may have a `__dlpack__` of its own.
        const bool is_their_own = habits_of_class(type) == habits;
        // What only restricts is believed of any class that bears the name; the rest of the library's alone.
        const bool is_genuine = is_their_own && is_library_class(type, *habits);
        if (is_genuine) plan.stream_of = find_library_stream(*habits);
        if (PyErr_Occurred() != nullptr) return false;  // interrupted
        plan.plain_call = habits->plain_call && (is_genuine || (is_their_own && habits->immutable));
        plan.on_cuda = plan.plain_call && habits->always_cuda && plan.stream_of != nullptr;
    }
    if (plan.table != nullptr || plan.table_fault != nullptr || (habits != nullptr && habits->guarded)) {
        const bool named_torch = habits != nullptr && habits->package == "torch";
        const auto torch = named_torch ? torch_library::find(here) : torch_library::finding{nullptr, true};
        if (PyErr_Occurred() != nullptr) return false;
        if (!torch.settled) plan.tag = 0;  // not to be remembered
        plan.guards = tensor_guards::find(type, here, torch.library);
        plan.honest_borrow = plan.table != nullptr && plan.guards.torch != nullptr &&
                             plan.guards.torch->lends_honestly(type, here) &&
                             exchange::detail::is_own_table(*plan.table, *plan.guards.torch);
        plan.only_fills = plan.honest_borrow && !plan.guards.torch->asks_python(type, here);
    }
    if (PyErr_Occurred() != nullptr) return false;
    const bool only_buffer = plan.table == nullptr && plan.table_fault == nullptr && !plan.numpy_struct &&
                             plan.dlpack == attribute_place::nowhere &&
                             plan.cuda_array_interface == attribute_place::nowhere;
    if (plan.table != nullptr)
        plan.direct = direct_way::exchange_table;
    else if (plan.on_cuda)
        plan.direct = direct_way::plain_dlpack;
    else if (plan.numpy_struct && !plan.masked)
        plan.direct = direct_way::numpy_struct;
    else if (plan.has_buffer && (plan.prefer_buffer || only_buffer) &&
             PyType_IsSubtype(type, &PyType_Type) == 0)
        plan.direct = direct_way::buffer;
    remember_plan(plan);
    exchange::detail::common_terms::note(plan);
    return true;
}

/// The plan of an object's class, a copy, and the class, held: foreign code runs by what follows, and has run
/// by the look at the class, which may even give the object another one. False with an exception set.
TENON_COLD [[nodiscard]] inline bool look_at_class(PyObject* obj, interpreter& here, ref& type,
                                                   type_plan& plan) noexcept {
    static constexpr int most = 8;
    for (int i = 0; i < most; ++i) {
        type = class_of(obj);
        if (const type_plan* const known = find_plan(as_type(type)))
            plan = *known;
        else if (!make_plan(as_type(type), here, plan))
            return false;
        if (Py_TYPE(obj) == as_type(type)) return true;
    }
    PyErr_SetString(
        PyExc_TypeError,
        "tenon: cannot take a tensor from an object that gets another class whenever it is looked at");
    return false;
}

/// Takes up or drops the habit of asking for a buffer first, as the type's objects turn out.
inline void prefer_buffer(PyTypeObject* type, bool yes) noexcept {
    if (type_plan* plan = find_plan(type); plan != nullptr && plan->buffer_first) {
        plan->prefer_buffer = yes;
        plan->direct = yes ? direct_way::buffer : direct_way::none;
    }
}

/// Asks a type that has something better for a buffer all the same, because it is quicker. What the buffer
/// protocol cannot say (an accelerator, bfloat16) `__dlpack__` may, so an ordinary exception only means "no".
[[nodiscard]] inline rung_result speculate_on_buffer(PyObject* obj, bool immutable, interpreter& here,
                                                     acquired& out, error& why, ref& swallowed) noexcept {
    const rung_result got = buffer::take(obj, immutable, here, out, why);
    if (got != rung_result::raised || is_no_answer_pending()) return got;
    swallowed = pending_exception();
    prefer_buffer(Py_TYPE(obj), false);
    why = refused("buffer", "the object refused to give one");
    return rung_result::refused;
}

/// `__dlpack__`, with what must be known beforehand.
[[nodiscard]] inline rung_result take_dlpack(PyObject* obj, const type_plan& plan,
                                             const import_options& options, bool writable, interpreter& here,
                                             acquired& out, error& why) noexcept {
    const tensor_guards guards = plan.guards;
    const auto grad = writable ? exchange::grad_rule::forbidden : exchange::grad_rule::ignored;
    if (!exchange::ask_guards(obj, guards, grad, here).allowed ||
        !exchange::ask_flags(obj, guards.flags, grad).allowed)
        return rung_result::raised;
    const rung_result got = dlpack::take(obj, plan, options, here, out, why);
    if (got != rung_result::taken) return got;
    // That ran foreign code, which may have given the tensor other memory.
    if (!exchange::ask_flags(obj, guards.flags, grad).allowed) {
        out.owner.reset();
        return rung_result::raised;
    }
    if (guards.torch != nullptr && !exchange::keep_storage(obj, *guards.torch, here, out)) {
        out.owner.reset();
        return rung_result::raised;
    }
    if (plan.buffer_first && !plan.prefer_buffer && out.device().is_cpu()) {
        const dtype_entry* const known = find_dtype(out.dtype());
        if (known != nullptr && !known->buffer_format.empty()) prefer_buffer(Py_TYPE(obj), true);
    }
    return got;
}

/// What `__dlpack__` has raised is the producer's own word, and ends the climb, unless it only says "not in
/// this way" and the type has another: Arrow's arrays refuse lists of a fixed size there, which Arrow's own
/// interface can say. What they refuse there for good reason is refused here with words that help, and the
/// producer's stand behind them.
[[nodiscard]] inline rung_result leave_it_to_arrow(const type_plan& plan, error& why, ref& refusal) noexcept {
    if (!arrow::is_declared(plan) || !arrow::is_refusal_pending()) return rung_result::raised;
    refusal = pending_exception();
    why = refused("", "it raised the exception that stands before this one");
    return rung_result::refused;
}

/// Bytes that were made for us are a copy, which may have been forbidden.
[[nodiscard]] inline rung_result unless_fresh(const import_options& options, acquired& out,
                                              error& why) noexcept {
    if (options.copy != false || !out.is_copied()) return rung_result::taken;
    out.owner.reset();
    why = refused("data", "the object makes a copy of its memory at every look, and copy=False was asked for")
              .with_advice("allow the copy");
    return rung_result::refused;
}

/// The protocols that have no way to say that what they give is a copy.
[[nodiscard]] inline bool is_silent_on_copies(rung r) noexcept {
    return r == rung::buffer_protocol || r == rung::array_interface || r == rung::arrow;
}

/// Notes that what was taken by such a protocol is a copy, made for this look, if the object gives other
/// memory when it is asked again. Objects that can be asked only once (a reader of a stream) are believed.
TENON_COLD [[nodiscard]] inline rung_result look_for_copy(rung r, PyObject* obj, const type_plan& plan,
                                                          const import_options& options, interpreter& here,
                                                          acquired& out) noexcept {
    // Asking again at every level of imports within imports would double the calls with each.
    if (out.empty() || out.is_copied() || (options.copy != false && !out.looking) ||
        !nesting_level::is_outermost())
        return rung_result::taken;
    acquired again;
    error unread{};
    again.owning = true;
    again.looking = out.looking;
    rung_result got = rung_result::absent;
    if (r == rung::buffer_protocol)
        got = buffer::take(obj, plan.immutable, here, again, unread);
    else if (r == rung::array_interface)
        got = array_interface::take(obj, plan, here, again, unread);
    else
        got = arrow::take(obj, plan, options, here, again, unread);
    if (got == rung_result::raised) {
        if (is_no_answer_pending()) return got;
        PyErr_Clear();
    }
    if (got == rung_result::taken && !again.empty() && again.data() != out.data()) out.mark_copied();
    return rung_result::taken;
}

/// A rung that has been tried before the ladder, and why it refused: it is not tried a second time.
struct tried_already {
    rung which;
    error why;
    ref swallowed;  ///< the exception of a speculative try, for when nothing better comes
};

TENON_COLD inline void raise_unmet(const error& e, PyObject* obj) noexcept try {
    if (attached_thread_state() == nullptr) return raise_detached();
    raise(e, "tenon: " + refusals::type_name(obj) + ": ");
} catch (...) {
    PyErr_NoMemory();
}

/// The ladder. Leaves the tensor in `out`, or an exception set, and what the rungs answered in `report`.
TENON_COLD [[nodiscard]] inline bool climb(PyObject* obj, const import_options& options, bool writable,
                                           acquired& out, tried_already* tried = nullptr,
                                           refusals* report = nullptr) noexcept {
    interpreter* const here = interpreter::current();
    if (here == nullptr) return false;
    const nesting_level level;
    if (!level) return false;
    out.ran_code = true;
    if (PyType_Check(obj) != 0) {
        PyErr_Format(PyExc_TypeError,
                     "tenon: cannot take a tensor from the class '%s'; pass an instance of it",
                     reinterpret_cast<PyTypeObject*>(obj)->tp_name);
        return false;
    }
    type_plan plan;
    ref type;
    if (!look_at_class(obj, *here, type, plan)) return false;

    refusals unread;
    refusals& told = report != nullptr ? *report : unread;
    error why{};
    ref swallowed = tried != nullptr ? std::move(tried->swallowed) : ref();
    ref dlpack_refusal;
    rung_result answer = rung_result::absent;
    // Runs one rung and says whether the climb ends there.
    const auto ends_at = [&](rung r, bool applies, auto&& take) {
        if (tried != nullptr && tried->which == r) {
            answer = rung_result::refused;
            why = tried->why;
            told.note(r, why);
            return false;
        }
        answer = applies ? take() : rung_result::absent;
        if (answer == rung_result::taken && is_silent_on_copies(r)) {
            answer = look_for_copy(r, obj, plan, options, *here, out);
            if (answer == rung_result::taken) answer = unless_fresh(options, out, why);
        }
        if (answer == rung_result::taken &&
            !meets(options, out, r == rung::dlpack_method || r == rung::cuda_interface, why)) {
            out.owner.reset();
            answer = rung_result::refused;
        }
        if (answer == rung_result::refused)
            told.note(r, why);
        else
            told.note(r, answer);
        return answer == rung_result::taken || answer == rung_result::raised;
    };
    // A table or struct that contradicts itself is the library's word on this memory: `__dlpack__` of the
    // same library would only say it again, or trip over it.
    const auto is_settled = [&] { return answer == rung_result::refused && why.code == errc::malformed; };
    // What NumPy's struct cannot say, none of NumPy's other protocols can, and none would name a way out.
    bool settled_by_numpy = false;
    const auto numpy_settles = [&] { return settled_by_numpy = answer == rung_result::refused; };
    // What says how its elements are to be read, and cannot be taken so, is not to be read otherwise: an
    // image whose bytes are the other way round, which Arrow's interface of the same object does not say.
    const auto is_last_word = [&] { return answer == rung_result::refused; };
    // Rungs that know no other place are left out where there is a better one to ask.
    const bool host_will_do = !options.to || options.wants_host();
    if (plan.masked) {
        answer = numpy::check_mask(obj, why);
        if (answer != rung_result::taken) {
            if (answer == rung_result::refused) raise_unmet(why, obj);
            return false;
        }
    }

    // Arrays of the host that are a GPU's as well, wanted as the GPU's (Numba's managed and mapped ones):
    // their CUDA interface says so.
    const auto cuda_interface = [&] {
        return ends_at(rung::cuda_interface, plan.cuda_array_interface != attribute_place::nowhere,
                       [&] { return cuda_array_interface::take(obj, plan, options, *here, out, why); });
    };
    const auto arrow_interface = [&] {
        return ends_at(rung::arrow, true, [&] { return arrow::take(obj, plan, options, *here, out, why); });
    };
    const bool cuda_first = options.for_cuda && plan.has_buffer && !plan.immutable && !plan.numpy_struct;

    const bool ended =
        PyCapsule_CheckExact(obj)
            ? ends_at(rung::capsule, true,
                      [&] { return bare_capsule::take(obj, options, writable, *here, out, why); })
            : (cuda_first && cuda_interface()) ||
                  ends_at(rung::exchange_table,
                          plan.table_fault != nullptr || (plan.table != nullptr && host_will_do),
                          [&] {
                              if (plan.table_fault != nullptr) {
                                  why = refused("exchange table", plan.table_fault);
                                  return rung_result::refused;
                              }
                              if (!out.owning) return exchange::borrow(obj, plan, writable, out, why);
                              const rung_result got = exchange::own(obj, plan, writable, *here, out, why);
                              return got == rung_result::taken ? follow(options, out, why) : got;
                          }) ||
                  is_settled() ||
                  ends_at(rung::numpy_struct, plan.numpy_struct && host_will_do,
                          [&] { return numpy::take(obj, here, out, why); }) ||
                  numpy_settles() ||
                  (plan.prefer_buffer && host_will_do &&
                   ends_at(rung::buffer_protocol, true,
                           [&] {
                               return speculate_on_buffer(obj, plan.immutable, *here, out, why, swallowed);
                           })) ||
                  (plan.arrow_first && (arrow_interface() || is_last_word())) ||
                  ends_at(rung::dlpack_method, plan.dlpack != attribute_place::nowhere,
                          [&] {
                              const rung_result got =
                                  take_dlpack(obj, plan, options, writable, *here, out, why);
                              return got == rung_result::raised ? leave_it_to_arrow(plan, why, dlpack_refusal)
                                                                : got;
                          }) ||
                  (!dlpack_refusal &&
                   ((!cuda_first && cuda_interface()) ||
                    (!plan.prefer_buffer &&
                     ends_at(rung::buffer_protocol, plan.has_buffer,
                             [&] { return buffer::take(obj, plan.immutable, *here, out, why); })) ||
                    ends_at(rung::array_interface, true,
                            [&] { return array_interface::take(obj, plan, *here, out, why); }) ||
                    is_last_word())) ||
                  arrow_interface();
    if (answer == rung_result::raised && swallowed) {
        // Two exceptions of one producer: the earlier is the better, since nothing had been tried before.
        ref later = pending_exception();
        restore_exception(std::move(swallowed));
        chain_behind(std::move(later));
    }
    if (ended && answer == rung_result::taken) {
        if (plan.hands_out_legacy) out.allow_legacy();
        return true;
    }
    out.no_array =
        out.quiet && answer != rung_result::raised && !settled_by_numpy && !dlpack_refusal && told.is_no_array();
    if (out.no_array) return false;
    if (settled_by_numpy)
        raise_unmet(why, obj);
    else if (answer != rung_result::raised)
        told.raise_for(obj);
    if (dlpack_refusal && answer == rung_result::refused) {
        chain_behind(std::move(dlpack_refusal));  // Arrow could say what is wrong, and what helps
    } else if (dlpack_refusal) {
        ref later = pending_exception();
        restore_exception(std::move(dlpack_refusal));
        chain_behind(std::move(later));
    }
    reword_for_torch(obj);
    return false;
}

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

/// Nothing in particular is asked for. Not on the stack of those who climb.
TENON_PRIVATE inline constexpr import_options plain_import{};

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

/// The way in for a plain import: types seen before go straight to their rung, with no attribute lookup, no
/// Python call and no allocation on the way; the others climb.
[[nodiscard]] inline bool acquire(PyObject* obj, bool writable, acquired& out) noexcept {
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

/// NumPy's array is common and its struct so quick to read that even the plan is left out.
TENON_HOT [[nodiscard]] inline bool borrow_numpy(PyObject* obj, acquired& out) noexcept {
    return Py_TYPE(obj) == numpy::known_ndarray.load(std::memory_order_relaxed) &&
           numpy::borrow_ordinary(obj, out);
}

}  // namespace detail

}  // namespace tenon::py
