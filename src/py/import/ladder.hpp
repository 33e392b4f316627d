// src/py/import/ladder.hpp: the import ladder: a table of the ways in, and the climb from one to the next.
#pragma once

#include "make_plan.hpp"
#include "refusals.hpp"

namespace tenon::py::detail {

// --- what two rungs do beyond their protocol -------------------------------------------------------------

/// Takes up or drops the habit of asking for a buffer first, as the type's objects turn out.
inline void prefer_buffer(PyTypeObject* type, bool yes) noexcept {
    if (type_plan* plan = find_plan(type); plan != nullptr && plan->buffer_first)
        plan->route.prefer_buffer = yes;
}

/// Asks a type that has something better for a buffer all the same, because it is quicker. What the buffer
/// protocol cannot say (an accelerator, bfloat16) `__dlpack__` may, so an ordinary exception only means "no".
[[nodiscard]] inline outcome take_buffer_if_it_can(attempt& a) noexcept {
    const outcome got = buffer::take(a);
    if (got != outcome::raised || is_no_answer_pending()) return got;
    a.swallowed = pending_exception();
    prefer_buffer(Py_TYPE(a.obj), false);
    return refused("buffer", "the object refused to give one");
}

/// `__dlpack__`, with what must be known before and after.
[[nodiscard]] inline outcome take_dlpack(attempt& a) noexcept {
    const type_plan& plan = a.plan;
    const auto grad = a.writable ? exchange::grad_rule::forbidden : exchange::grad_rule::ignored;
    using exchange::verdict;
    const auto ask_flags = [&] { return exchange::ask_flags(a.obj, plan.guards.flags, grad); };
    if (plan.dlpack == attribute_place::nowhere) return outcome::absent;
    if (exchange::ask_guards(a.obj, plan.guards, grad, a.here) == verdict::forbidden ||
        ask_flags() == verdict::forbidden)
        return outcome::raised;
    const outcome got = dlpack::take(a);
    if (got == outcome::raised && arrow::is_declared(plan) && arrow::is_refusal_pending()) {
        // What it has raised is the producer's own word, and ends the climb, unless it only says "not in this
        // way" and the type has another: Arrow's arrays refuse lists of a fixed size here, which Arrow's own
        // interface can say. What they refuse for good reason is refused there with words that help.
        a.left_to_arrow = pending_exception();
        return refused("", "it raised the exception that stands before this one");
    }
    if (got != outcome::taken) return got;
    // That ran foreign code, which may have given the tensor other memory.
    if (ask_flags() == verdict::forbidden ||
        (plan.guards.torch != nullptr && !exchange::keep_storage(a.obj, *plan.guards.torch, a.here, a.out))) {
        a.out.owner.reset();
        return outcome::raised;
    }
    if (plan.buffer_first && !plan.route.prefer_buffer && a.out.device().is_cpu()) {
        const dtype_entry* const known = find_dtype(a.out.dtype());
        if (known != nullptr && !known->buffer_format.empty()) prefer_buffer(Py_TYPE(a.obj), true);
    }
    return got;
}

// --- the table --------------------------------------------------------------------------------------------

/// What besides success, and an exception of the producer's, ends the climb at a rung.
enum class settling : unsigned char {
    nothing,
    malformed,  ///< what contradicts itself is the library's word on this memory: another way would only say
                ///< it again
    refusal,    ///< whatever it refuses no later rung could say better, or would read as what it is not
};

/// One way in.
struct rung {
    rung_id id;
    bool (*applies)(const attempt&) noexcept;  ///< whether it stands at this place for this object
    outcome (*take)(attempt&) noexcept;        ///< absent: the object does not speak the protocol
    settling settles;
};

namespace ladder {

inline bool always(const attempt&) noexcept { return true; }
/// Arrays of the host that are a GPU's as well, wanted as the GPU's (Numba's managed and mapped ones): their
/// CUDA interface says so.
inline bool as_cuda(const attempt& a) noexcept {
    return a.options.for_cuda && a.plan.has_buffer && !a.plan.immutable && !a.plan.numpy_struct;
}
inline bool quick_buffer(const attempt& a) noexcept { return a.plan.route.prefer_buffer && a.host_will_do(); }
inline bool arrow_first(const attempt& a) noexcept { return a.plan.arrow_first; }
inline bool after_dlpack(const attempt& a) noexcept { return !a.left_to_arrow; }
inline bool cuda_after_dlpack(const attempt& a) noexcept { return after_dlpack(a) && !as_cuda(a); }
inline bool buffer_after_dlpack(const attempt& a) noexcept {
    return after_dlpack(a) && !a.plan.route.prefer_buffer;
}
inline bool arrow_last(const attempt& a) noexcept { return !a.plan.arrow_first; }

/// In this order. A bare capsule is not looked at in any of these ways.
TENON_PRIVATE inline constexpr rung rungs[] = {
    {rung_id::cuda_interface, as_cuda, cuda_array_interface::take, settling::nothing},
    {rung_id::exchange_table, always, exchange::take, settling::malformed},
    {rung_id::numpy_struct, always, numpy::take, settling::refusal},
    {rung_id::buffer_protocol, quick_buffer, take_buffer_if_it_can, settling::nothing},
    {rung_id::arrow, arrow_first, arrow::take, settling::refusal},
    {rung_id::dlpack_method, always, take_dlpack, settling::nothing},
    {rung_id::cuda_interface, cuda_after_dlpack, cuda_array_interface::take, settling::nothing},
    {rung_id::buffer_protocol, buffer_after_dlpack, buffer::take, settling::nothing},
    {rung_id::array_interface, after_dlpack, array_interface::take, settling::refusal},
    {rung_id::arrow, arrow_last, arrow::take, settling::nothing},
};
TENON_PRIVATE inline constexpr rung capsule_rung = {rung_id::capsule, always, dlpack::take_bare_capsule,
                                                    settling::refusal};

/// The first rung of that name, or the one `Later` comes to after it.
template <rung_id Id, int Later = 0>
[[nodiscard]] const rung& by() noexcept {
    static constexpr std::size_t at = [] {
        std::size_t i = 0;
        for (int later = Later; rungs[i].id != Id || later-- > 0;) ++i;
        return i;
    }();
    return rungs[at];
}

}  // namespace ladder

// --- the climb --------------------------------------------------------------------------------------------

/// A rung that has been tried before the ladder: it is not tried a second time.
struct tried_already {
    rung_id which;
    outcome answer;
    ref swallowed;  ///< the exception of a rung that was tried only because it is quick
};

/// The protocols that have no way to say that what they give is a copy.
[[nodiscard]] inline bool is_silent_on_copies(const rung& r) noexcept {
    return r.id == rung_id::buffer_protocol || r.id == rung_id::array_interface || r.id == rung_id::arrow;
}

/// Notes that what was taken by a protocol that cannot say so is a copy, made for this look, if the object
/// gives other memory when it is asked again. Objects that can be asked only once (a reader of a stream) are
/// believed. False with an exception set.
TENON_COLD [[nodiscard]] inline bool look_for_copy(const rung& r, attempt& a) noexcept {
    // Asking again at every level of imports within imports would double the calls with each.
    if (!is_silent_on_copies(r) || a.out.empty() || a.out.is_copied() ||
        (a.options.copy != false && !a.out.looking) || !nesting_level::is_outermost())
        return true;
    acquired again;
    again.owning = true;
    again.looking = a.out.looking;
    attempt second{a.obj, a.plan, a.options, a.writable, a.here, again};
    const outcome got = r.take(second);
    if (got == outcome::raised) {
        if (is_no_answer_pending()) return false;
        PyErr_Clear();
    }
    if (got == outcome::taken && !again.empty() && again.data() != a.out.data()) a.out.mark_copied();
    return true;
}

/// One rung, and whether it delivered what was asked for.
[[nodiscard]] inline outcome try_rung(const rung& r, attempt& a) noexcept {
    const outcome got = r.take(a);
    if (got != outcome::taken) return got;
    if (!look_for_copy(r, a)) return outcome::raised;
    if (is_silent_on_copies(r) && a.options.copy == false && a.out.is_copied())
        return a.give_up(
            refused("data",
                    "the object makes a copy of its memory at every look, and copy=False was asked for")
                .with_advice("allow the copy"));
    const bool last_word = r.id == rung_id::dlpack_method || r.id == rung_id::cuda_interface;
    if (auto met = meets(a.options, a.out, last_word); !met) return a.give_up(met.error());
    return outcome::taken;
}

[[nodiscard]] inline bool is_settled(const rung& r, const outcome& got) noexcept {
    if (got == outcome::taken || got == outcome::raised) return true;
    if (got != outcome::refused) return false;
    return r.settles == settling::refusal ||
           (r.settles == settling::malformed && got.why().code == errc::malformed);
}

/// From rung to rung until one settles it. What came of the last that applied.
[[nodiscard]] inline outcome try_rungs(attempt& a, tried_already* tried, refusals& told,
                                       const rung*& last) noexcept {
    outcome got = outcome::absent;
    for (const rung& r : ladder::rungs) {
        if (!r.applies(a)) continue;
        last = &r;
        const bool is_known = tried != nullptr && tried->which == r.id;
        got = is_known ? tried->answer : try_rung(r, a);
        told.note(r.id, got);
        if (is_settled(r, got)) break;
    }
    return got;
}

/// The one exception of a climb that led nowhere, with what else was raised on the way behind it.
TENON_COLD inline void raise_answer(attempt& a, const outcome& got, const rung* last,
                                    const refusals& told) noexcept {
    if (got == outcome::raised && a.swallowed) {
        // Two exceptions of one producer: the earlier is the better, since nothing had been tried before.
        ref later = pending_exception();
        restore_exception(std::move(a.swallowed));
        chain_behind(std::move(later));
    }
    // What NumPy's struct cannot say, none of NumPy's other protocols can, and none would name a way out.
    a.out.no_array = a.out.quiet && got != outcome::raised && !a.left_to_arrow && told.is_no_array();
    if (a.out.no_array) return;
    if (got == outcome::refused && last->id == rung_id::numpy_struct)
        raise_unmet(got.why(), a.obj);
    else if (got != outcome::raised)
        told.raise_for(a.obj, static_cast<bool>(a.left_to_arrow));
    if (a.left_to_arrow && got == outcome::refused) {
        chain_behind(std::move(a.left_to_arrow));  // Arrow could say what is wrong, and what helps
    } else if (a.left_to_arrow) {
        ref later = pending_exception();
        restore_exception(std::move(a.left_to_arrow));
        chain_behind(std::move(later));
    }
    reword_for_torch(a.obj);
}

/// Leaves the tensor in `out`, or an exception set, and what the rungs answered in `report`.
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
    if (plan.masked) {
        const outcome shown = numpy::check_mask(obj);
        if (shown == outcome::refused) raise_unmet(shown.why(), obj);
        if (shown != outcome::taken) return false;
    }
    attempt a{obj, plan, options, writable, *here, out};
    if (tried != nullptr) a.swallowed = std::move(tried->swallowed);
    refusals unread;
    refusals& told = report != nullptr ? *report : unread;
    const rung* last = &ladder::capsule_rung;
    outcome got = outcome::absent;
    if (PyCapsule_CheckExact(obj)) {
        got = try_rung(*last, a);
        told.note(last->id, got);
    } else {
        got = try_rungs(a, tried, told, last);
    }
    if (got == outcome::taken) {
        if (plan.hands_out_legacy) out.allow_legacy();
        return true;
    }
    raise_answer(a, got, last, told);
    return false;
}

}  // namespace tenon::py::detail
