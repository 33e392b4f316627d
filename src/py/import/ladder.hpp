// src/py/import/ladder.hpp: the import ladder: a table of the ways in, the climb from one to the next, and
// the one exception that says why each refused.
#pragma once

#include "make_plan.hpp"

namespace tenon::py::detail {

// --- what two rungs do beyond their protocol -------------------------------------------------------------

/// Asks a type that has something better for a buffer all the same, because it is quicker. What the buffer
/// protocol cannot say (an accelerator, bfloat16) `__dlpack__` may, so an ordinary exception only means "no".
[[nodiscard]] inline outcome take_buffer_if_it_can(attempt& a) noexcept {
    const outcome got = buffer::take(a);
    if (got != outcome::raised || is_no_answer_pending()) return got;
    a.swallowed = pending_exception();
    learn(a, [](route& r) { r.prefer_buffer = false; });
    return refused("buffer", "the object refused to give one");
}

/// `__dlpack__`, with what must be known before and after.
[[nodiscard]] inline outcome take_dlpack(attempt& a) noexcept {
    const type_plan& plan = a.plan;
    const auto shows_memory = [&] { return exchange::ask_flags(a.obj, plan.guards.flags, a.writable); };
    if (plan.dlpack == attribute_place::nowhere) return outcome::absent;
    if (!exchange::ask_guards(a) || !shows_memory()) return outcome::raised;
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
    if (!shows_memory() || !exchange::keep_storage(a)) {
        a.out.owner.reset();
        return outcome::raised;
    }
    if (plan.buffer_first && !plan.route.prefer_buffer && a.out.device().is_cpu()) {
        const dtype_entry* const known = find_dtype(a.out.dtype());
        if (known != nullptr && !known->buffer_format.empty())
            learn(a, [](route& r) { r.prefer_buffer = true; });
    }
    return got;
}

// --- the table --------------------------------------------------------------------------------------------

/// A protocol in words: its name, and what is said of an object that does not speak it.
struct protocol {
    const char* name;
    const char* absent;
    bool tells_copies = true;  ///< it has a way to say that what it gives is a copy
};

/// What besides success, and an exception of the producer's, ends the climb at a rung.
enum class settling : unsigned char {
    nothing,
    malformed,  ///< what contradicts itself is the library's word on this memory: another way would only say
                ///< it again
    refusal,    ///< whatever it refuses no later rung could say better, or would read as what it is not
};

/// One way in.
struct rung {
    const protocol& speaks;
    bool (*applies)(const attempt&) noexcept;  ///< whether it stands at this place for this object
    outcome (*take)(attempt&) noexcept;        ///< absent: the object does not speak the protocol
    settling settles;
};

namespace ladder {

TENON_PRIVATE inline constexpr protocol capsule{"DLPack capsule", "not a capsule"};
TENON_PRIVATE inline constexpr protocol exchange_table{"C exchange table",
                                                       "the type has no __dlpack_c_exchange_api__"};
TENON_PRIVATE inline constexpr protocol numpy_struct{"NumPy struct", "not a numpy.ndarray of a plain dtype"};
TENON_PRIVATE inline constexpr protocol dlpack_method{"__dlpack__", "no such method"};
TENON_PRIVATE inline constexpr protocol cuda_interface{"__cuda_array_interface__", "no such attribute"};
TENON_PRIVATE inline constexpr protocol buffer_protocol{"buffer protocol", "the type does not support it",
                                                        false};
TENON_PRIVATE inline constexpr protocol array_interface{"__array_interface__", "no such attribute", false};
TENON_PRIVATE inline constexpr protocol arrow_interface{
    "Arrow", "no __arrow_c_array__, __arrow_c_device_array__ or __arrow_c_stream__", false};

inline bool always(const attempt&) noexcept { return true; }
inline bool is_capsule(const attempt& a) noexcept { return PyCapsule_CheckExact(a.obj); }
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

/// In this order.
TENON_PRIVATE inline constexpr rung rungs[] = {
    {capsule, is_capsule, dlpack::take_bare_capsule, settling::refusal},
    {cuda_interface, as_cuda, cuda_array_interface::take, settling::nothing},
    {exchange_table, always, exchange::take, settling::malformed},
    {numpy_struct, always, numpy::take, settling::refusal},
    {buffer_protocol, quick_buffer, take_buffer_if_it_can, settling::nothing},
    {arrow_interface, arrow_first, arrow::take, settling::refusal},
    {dlpack_method, always, take_dlpack, settling::nothing},
    {cuda_interface, cuda_after_dlpack, cuda_array_interface::take, settling::nothing},
    {buffer_protocol, buffer_after_dlpack, buffer::take, settling::nothing},
    {array_interface, after_dlpack, array_interface::take, settling::refusal},
    {arrow_interface, arrow_last, arrow::take, settling::nothing},
};

}  // namespace ladder

// --- why not ----------------------------------------------------------------------------------------------

/// What was answered to each protocol that was tried, in that order, for the one exception that tells it all.
class refusals {
public:
    struct answer {
        const protocol* asked;
        outcome came;

        [[nodiscard]] const error* why() const noexcept {
            return came == outcome::refused ? &came.why() : nullptr;
        }
    };

    refusals() noexcept {}  // NOLINT(modernize-use-equals-default): = default would zero the room
    /// Asks, and notes the answer where it stays.
    template <class Ask>
    [[nodiscard]] const outcome& note(const protocol& asked, Ask&& ask) noexcept {
        return (new (&all_[count_++]) answer{&asked, ask()})->came;
    }
    [[nodiscard]] std::span<const answer> all() const noexcept { return {all_, count_}; }
    /// Null when none of the protocols was there.
    [[nodiscard]] const error* first() const noexcept {
        for (const answer& each : all())
            if (const error* const why = each.why()) return why;
        return nullptr;
    }

    /// Raises: TypeError when no protocol was there at all, else as the first refusal says. The exception
    /// carries its parts as well: `reason`, its first sentence, and `tried`. `told_elsewhere`: `__dlpack__`
    /// raised an exception, which stands behind this one.
    TENON_COLD void raise_for(PyObject* obj, bool told_elsewhere) const noexcept try {
        std::string list;
        for (const answer& each : all()) {
            append(list, {"\n  ", each.asked->name, ": "});
            list += each.why() != nullptr ? each.why()->message() : each.asked->absent;
        }
        std::string reason = sentence({"cannot take a tensor from ", type_name(obj)});
        if (!first()) reason += ": it speaks no tensor protocol; pass an array, a DLPack capsule or a buffer";
        raise(first() ? first()->code : errc::not_an_array, sentence({"tenon: ", reason, ". Tried:", list}));
        note_parts(reason, told_elsewhere);
    } catch (...) {
        PyErr_NoMemory();
    }

    static std::string type_name(PyObject* obj) { return sentence({"'", Py_TYPE(obj)->tp_name, "' object"}); }

private:
    /// `(name, reason)` of each rung that was tried, the reason None where the protocol was not there, or
    /// what it raised is told elsewhere. Null with an exception set on failure.
    [[nodiscard]] ref list_of_tried(bool told_elsewhere) const {
        ref list = ref::take(PyTuple_New(static_cast<Py_ssize_t>(count_)));
        for (std::size_t i = 0; list && i < count_; ++i) {
            const answer& each = all_[i];
            const bool told =
                each.why() != nullptr && !(told_elsewhere && each.asked == &ladder::dlpack_method);
            const std::string why = told ? each.why()->message() : std::string();
            PyObject* const line = Py_BuildValue("(sz)", each.asked->name, told ? why.c_str() : nullptr);
            if (line == nullptr) return {};
            PyTuple_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), line);
        }
        return list;
    }
    /// Gives the pending exception its parts. What fails at it is forgotten, but for an interruption.
    void note_parts(const std::string& reason, bool told_elsewhere) const {
        ref raised = pending_exception();
        if (!raised) return;
        const ref text = ref::take(PyUnicode_FromString(reason.c_str()));
        const ref tried = text ? list_of_tried(told_elsewhere) : ref();
        if (tried && call::set_attr(raised.get(), "reason", text.get()) == 0)
            (void)call::set_attr(raised.get(), "tried", tried.get());
        if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_Exception) == 0) return;
        PyErr_Clear();
        restore_exception(std::move(raised));
    }

    answer all_[std::size(ladder::rungs)];
    std::size_t count_ = 0;
};

// --- the climb --------------------------------------------------------------------------------------------

/// Notes that what was taken by a protocol that cannot say so is a copy, made for this look, if the object
/// gives other memory when it is asked again. Objects that can be asked only once (a reader of a stream) are
/// believed. False with an exception set.
TENON_COLD [[nodiscard]] inline bool look_for_copy(const rung& r, attempt& a) noexcept {
    // Asking again at every level of imports within imports would double the calls with each.
    if (r.speaks.tells_copies || a.out.empty() || a.out.is_copied() ||
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
    if (!r.speaks.tells_copies && a.options.copy == false && a.out.is_copied())
        return a.give_up(
            refused("data",
                    "the object makes a copy of its memory at every look, and copy=False was asked for")
                .with_advice("allow the copy"));
    const bool last_word = &r.speaks == &ladder::dlpack_method || &r.speaks == &ladder::cuda_interface;
    if (auto met = meets(a.options, a.out, last_word); !met) return a.give_up(met.error());
    return outcome::taken;
}

[[nodiscard]] inline bool is_settled(const rung& r, const outcome& got) noexcept {
    if (got != outcome::refused) return got == outcome::raised;
    return r.settles == settling::refusal ||
           (r.settles == settling::malformed && got.why().code == errc::malformed);
}

/// The one exception of a climb that ended without a tensor, with what else was raised on the way behind it.
TENON_COLD inline void raise_answer(attempt& a, const refusals& told) noexcept {
    const refusals::answer& last = told.all().back();
    const bool is_refused = last.came == outcome::refused;
    const bool is_raised = last.came == outcome::raised;
    // Two exceptions of one producer: the earlier is the better, since nothing had been tried before.
    if (is_raised && a.swallowed) raise_again(std::move(a.swallowed));
    a.out.no_array = a.out.quiet && !is_raised && !a.left_to_arrow && told.first() == nullptr;
    if (a.out.no_array) return;
    // What NumPy's struct cannot say, none of NumPy's other protocols can, and none would name a way out.
    if (is_refused && last.asked == &ladder::numpy_struct)
        raise_unmet(last.came.why(), a.obj);
    else if (!is_raised)
        told.raise_for(a.obj, static_cast<bool>(a.left_to_arrow));
    if (a.left_to_arrow && is_refused)
        chain_behind(std::move(a.left_to_arrow));  // Arrow could say what is wrong, and what helps
    else if (a.left_to_arrow)
        raise_again(std::move(a.left_to_arrow));
    reword_for_torch(a.obj);
}

/// One rung that was tried before the climb, and what came of it: it is not tried a second time.
struct first_look {
    const protocol* asked = nullptr;
    outcome (*take)(attempt&) noexcept = nullptr;
    outcome answer = outcome::absent;
    ref swallowed{}, left_to_arrow{};  ///< as in `attempt`
};

/// From rung to rung until one settles it. Leaves the tensor in `out`, or an exception set, and what the
/// rungs answered in `report`.
TENON_COLD [[nodiscard]] inline bool climb(PyObject* obj, const import_options& options, bool writable,
                                           acquired& out, first_look* tried = nullptr,
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
    const looked_at seen(obj, *here);
    if (!seen) return false;
    const type_plan& plan = seen.plan();
    if (plan.masked) {
        const outcome shown = numpy::check_mask(obj);
        if (shown == outcome::refused) raise_unmet(shown.why(), obj);
        if (shown != outcome::taken) return false;
    }
    attempt a{obj, plan, options, writable, *here, out};
    if (tried != nullptr) {
        a.swallowed = std::move(tried->swallowed);
        a.left_to_arrow = std::move(tried->left_to_arrow);
    }
    refusals unread;
    refusals& told = report != nullptr ? *report : unread;
    for (const rung& r : ladder::rungs) {
        if (!r.applies(a)) continue;
        const bool is_known = tried != nullptr && &r.speaks == tried->asked;
        const outcome& got = told.note(r.speaks, [&] { return is_known ? tried->answer : try_rung(r, a); });
        if (got == outcome::taken) {
            if (plan.hands_out_legacy) out.allow_legacy();
            return true;
        }
        if (is_settled(r, got)) break;
    }
    raise_answer(a, told);
    return false;
}

}  // namespace tenon::py::detail
