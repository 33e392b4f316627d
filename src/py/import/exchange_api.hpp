// src/py/import/exchange_api.hpp: the rung that calls the C exchange table a type publishes: no Python call
// at all.
#pragma once

#include "exchange_probe.hpp"
#include "placing.hpp"
#include "plan_cache.hpp"

namespace tenon::py::exchange {

/// What becomes of a tensor that requires grad.
enum class grad_rule : unsigned char {
    ignored,    ///< it is lent for reading
    noted,      ///< it comes out read-only
    forbidden,  ///< it was to be written to
};

/// What the guards said.
enum class verdict : unsigned char {
    allowed,
    needs_grad,  ///< allowed, and it requires grad
    forbidden,   ///< an exception is set
};

namespace detail {

TENON_COLD [[nodiscard]] inline outcome call_failed(const char* problem) noexcept {
    if (PyErr_Occurred() != nullptr) return outcome::raised;
    return refused("exchange table", problem);
}

/// Calls a function of the table. One that throws C++ exceptions breaks the rules, but not us. That of a
/// library which is known to do no more than `fill` a struct in runs no code of others.
template <class Function, class Out>
TENON_HOT [[nodiscard]] inline bool succeeds(Function function, PyObject* obj, Out* out,
                                             bool fills = false) noexcept {
    try {
        if (!fills) TENON_FOREIGN_CODE_POINT();
        return authors_code([&]() TENON_HOT_LAMBDA { return function(obj, out) == 0; });
    } catch (...) {
        return false;
    }
}

inline constexpr const char* silent_failure = "the call failed without an exception";

/// What may not be taken is raised here and now: no later rung may have a try, since PyTorch's own
/// `__dlpack__` lets negative views pass.
TENON_COLD inline verdict forbid(const error& e) noexcept {
    raise(e, "tenon: cannot take this tensor: ");
    return verdict::forbidden;
}
TENON_COLD inline verdict forbid_lazy(bool conjugate) noexcept {
    return forbid(conjugate
                      ? refused("data", "a conjugate view: its memory holds other numbers than it shows")
                            .with_advice("call .resolve_conj() first")
                      : refused("data", "a negative view: its memory holds other numbers than it shows")
                            .with_advice("call .resolve_neg() first"));
}
/// Of a tensor that requires grad, where that matters.
[[nodiscard]] inline verdict judge_grad(grad_rule grad) noexcept {
    if (grad == grad_rule::noted) return verdict::needs_grad;
    return forbid(refused("data", "it requires grad, so it may not be written to from outside")
                      .with_advice("pass .detach(), or take it for reading only"));
}

}  // namespace detail

/// Asks the object by its attributes, where they must be, whether its memory holds what it shows, and whether
/// it may be written to. Runs foreign code: whatever was borrowed is stale afterwards, and so may the answers
/// be. `ask_flags` has the last word where it can.
[[nodiscard]] inline verdict ask_guards(PyObject* obj, const tensor_guards guards, grad_rule grad,
                                        const interpreter& names) noexcept {
    if (!guards.asked) return verdict::allowed;
    const nesting_level level;
    if (!level) return verdict::forbidden;
    if (const int lazy = guards.conjugate.ask(obj, names.is_conj); lazy != 0)
        return lazy > 0 ? detail::forbid_lazy(true) : verdict::forbidden;
    if (const int lazy = guards.negative.ask(obj, names.is_neg); lazy != 0)
        return lazy > 0 ? detail::forbid_lazy(false) : verdict::forbidden;
    const int needed = grad != grad_rule::ignored ? guards.requires_grad.ask(obj, names.requires_grad) : 0;
    if (needed < 0) return verdict::forbidden;
    return needed > 0 ? detail::judge_grad(grad) : verdict::allowed;
}

/// The same of what is known without running anything: to be asked right beside what it is asked about.
TENON_HOT [[nodiscard]] inline verdict ask_flags(PyObject* obj, const torch_flags* flags, grad_rule grad,
                                                 bool may_be_complex = true) noexcept {
    if (flags == nullptr) return verdict::allowed;
    if (flags->is_lazy(obj, may_be_complex)) [[unlikely]]
        return detail::forbid_lazy(flags->is_conjugate(obj));
    if (grad != grad_rule::ignored && flags->requires_grad(obj)) [[unlikely]]
        return detail::judge_grad(grad);
    return verdict::allowed;
}

namespace detail {

/// What a call of the table needs of a plan, read off it before foreign code runs: the plan may be another
/// type's afterwards.
struct table_terms {
    const abi::exchange_api* table = nullptr;
    const torch_flags* flags = nullptr;
    bool immutable = false;
    bool only_fills = false;  ///< PyTorch's own, which neither runs code nor succeeds with an exception set
};
TENON_HOT [[nodiscard]] inline table_terms terms_of(const type_plan& plan) noexcept {
    return {plan.table, plan.guards.flags, plan.immutable, plan.only_fills};
}

/// The terms of `torch.Tensor` itself, the class of most tensors: no plan has to be looked for. The class is
/// kept for good, so no other has its address; the rest is read and written under the GIL of the one
/// interpreter that the class is in.
class common_terms {
public:
    TENON_HOT [[nodiscard]] static bool find(PyTypeObject* type, table_terms& out) noexcept {
        if constexpr (!is_used) return false;
        if (type != type_.load(std::memory_order_relaxed) || tag_ != version_tag(type)) return false;
        out = terms_;
        return true;
    }
    /// Notes a plan, if it is one of that class, by which its objects can be borrowed without being asked.
    static void note(const type_plan& plan) noexcept {
        if (!is_used || plan.tag == 0 || !plan.only_fills || plan.guards.asked ||
            !plan.guards.torch->is_plain(plan.type) || plan.table->dltensor_from_py_object_no_sync == nullptr)
            return;
        tag_ = plan.tag;
        terms_ = terms_of(plan);
        type_.store(plan.type, std::memory_order_relaxed);
    }

private:
#if defined(Py_GIL_DISABLED)
    static constexpr bool is_used = false;
#else
    static constexpr bool is_used = !py::detail::finding_runs_code;
#endif
    TENON_PRIVATE static inline constinit std::atomic<PyTypeObject*> type_{nullptr};
    TENON_PRIVATE static inline constinit unsigned tag_ = 0;
    TENON_PRIVATE static inline constinit table_terms terms_{};
};

/// A tensor that is asked of a table: whose, on which terms, and what becomes of its gradient.
struct loan {
    PyObject* obj;
    table_terms terms;
    tensor_guards guards;
    grad_rule grad;
    interpreter& home;
    acquired& out;
};

[[nodiscard]] inline outcome own_once(const loan& l) noexcept {
    abi::managed_tensor_versioned* managed = nullptr;
    const auto function = l.terms.table->managed_tensor_from_py_object_no_sync;
    if (function == nullptr) return call_failed(null_function);
    if (!succeeds(function, l.obj, &managed)) return call_failed(silent_failure);
    if (managed == nullptr) return call_failed("the call succeeded without a tensor");
    // Ours from here on, errors included.
    keep_alive owner = py::detail::keep_managed(managed, true, &l.home);
    if (PyErr_Occurred() != nullptr) return outcome::raised;
    const verdict told = ask_flags(l.obj, l.terms.flags, l.grad);
    if (told == verdict::forbidden) return outcome::raised;
    const auto seen = foreign::describe(managed, true);
    if (!seen) return seen.error();
    const std::uint64_t flags = l.terms.immutable ? seen->flags | abi::flag::read_only : seen->flags;
    if (auto admitted = l.out.admit({seen->tensor, flags, seen->version}); !admitted) return admitted;
    l.out.add_marks(tenon::detail::marks_of(managed));
    if (told == verdict::needs_grad) l.out.mark_gradient();
    if (!note_current_stream(l.terms.table->current_work_stream, false, l.out)) return outcome::raised;
    l.out.owner = std::move(owner);
    return outcome::taken;
}

/// A call of the borrowing function, and nothing else.
TENON_HOT [[nodiscard]] inline outcome call_borrow(PyObject* obj, table_terms terms, acquired& out) noexcept {
    abi::dl_tensor t{};
    const auto function = terms.table->dltensor_from_py_object_no_sync;
    if (function == nullptr) [[unlikely]]  // it was there before others ran
        return call_failed(null_function);
    if (!succeeds(function, obj, &t, terms.only_fills)) [[unlikely]]
        return call_failed(silent_failure);
    if (!terms.only_fills) [[unlikely]] {
        out.ran_code = true;
        if (PyErr_Occurred() != nullptr) return outcome::raised;
    }
    const std::uint64_t flags = terms.immutable ? abi::flag::read_only : 0;
    if (auto ok = out.admit_here({t, flags, terms.table->header.version}); !ok) [[unlikely]]
        return ok;
    return outcome::taken;
}

TENON_COLD [[nodiscard]] inline outcome call_borrow_again(PyObject* obj, table_terms terms,
                                                          acquired& out) noexcept {
    return call_borrow(obj, terms, out);
}

/// Notes the stream that the library works on. A function that we do not know may run anything: what it lent
/// before is stale then, and borrowed once more.
TENON_COLD [[nodiscard]] inline outcome note_stream_borrowed(PyObject* obj, table_terms terms,
                                                             acquired& out) noexcept {
    if (!note_current_stream(terms.table->current_work_stream, terms.only_fills, out)) return outcome::raised;
    if (terms.only_fills) return outcome::taken;
    const device where = out.device();
    void* const stream = out.stream();
    if (const outcome got = call_borrow_again(obj, terms, out); got != outcome::taken) return got;
    if (out.device() != where)
        return refused("device", "the tensor was moved while it was imported", out.device(), where);
    out.set_stream(stream);
    return outcome::taken;
}

/// A borrowing call, with the stream, for whoever is in no hurry.
TENON_COLD [[nodiscard]] inline outcome borrow_once(PyObject* obj, table_terms terms,
                                                    acquired& out) noexcept {
    const outcome got = call_borrow_again(obj, terms, out);
    return got == outcome::taken && out.device().has_streams() ? note_stream_borrowed(obj, terms, out) : got;
}

/// How often something is taken anew that changed while it was looked at.
inline constexpr int most_rounds = 4;

TENON_COLD inline outcome keeps_changing() noexcept {
    (void)forbid(refused("data", "the tensor was given other memory while it was imported")
                     .with_advice("let nothing else change it meanwhile"));
    return outcome::raised;
}

/// Borrows, and asks whether that is what it shows. Asking by attributes runs foreign code, and a borrowed
/// struct is good only until then: it is borrowed a second time, and must be the same.
TENON_COLD [[nodiscard]] inline outcome borrow_guarded(const loan& l) noexcept {
    acquired& out = l.out;
    for (int round = 0; round < most_rounds; ++round) {
        outcome got = borrow_once(l.obj, l.terms, out);
        if (got != outcome::taken) return got;
        const void* const data = out.data();
        const std::int64_t size = out.size();
        const verdict asked = ask_guards(l.obj, l.guards, l.grad, l.home);
        if (asked == verdict::forbidden) return outcome::raised;
        if (l.guards.asked) got = borrow_once(l.obj, l.terms, out);
        if (got != outcome::taken) return got;
        const verdict told = ask_flags(l.obj, l.terms.flags, l.grad);
        if (told == verdict::forbidden) return outcome::raised;
        if (asked == verdict::needs_grad || told == verdict::needs_grad) out.mark_gradient();
        if (out.data() == data && out.size() == size) return outcome::taken;
    }
    return keeps_changing();
}

/// Whether every byte that the tensor reaches lies there.
[[nodiscard]] inline bool lies_in(const tensor_ref& t, torch_library::memory there) noexcept {
    const auto span = touched_span(t.shape(), t.strides());
    const auto above = span ? byte_count(span->high + 1, t.dtype(), t.is_subbyte_padded()) : std::nullopt;
    if (!above || span->low < 0) return false;  // PyTorch has no negative strides
    const auto begin = reinterpret_cast<std::uintptr_t>(t.data());
    return begin >= there.address && begin - there.address <= there.size &&
           static_cast<std::uint64_t>(*above) <= there.size - (begin - there.address);
}

/// Refuses a tensor whose storage has been made smaller than it (`storage.resize_`), if it is on a device
/// where what a storage shows is known to be its memory.
TENON_COLD [[nodiscard]] inline bool reaches_beyond(device where) noexcept {
    if (!where.is_host_accessible() && !where.has_streams()) return false;
    (void)forbid(refused("data", "the tensor reaches beyond its storage, which was made smaller")
                     .with_advice("resize the storage back, or pass a new tensor"));
    return true;
}

/// Borrows, and keeps the storage behind the tensor alive. The managed struct of PyTorch's table keeps the
/// tensor instead, which `t.data = ...`, `t.set_()` and `module.to()` point to other memory, freeing what we
/// were given.
///
/// The storage is had before the memory is borrowed, and other code may have run between the two and in them
/// (a collector's finalizers, another thread): what counts is that the memory lies in the storage that is
/// held, whatever the tensor points to by now. Where that cannot be said (an object that is no storage, or
/// one that does not show addresses), the table's owning call has to do.
[[nodiscard]] inline outcome own_storage(const loan& l) noexcept {
    std::optional<torch_library::memory> last;
    const void* last_data = nullptr;
    for (int round = 0; round < most_rounds; ++round) {
        const ref storage = l.guards.torch->storage_of(l.obj, l.home);
        if (!storage) return call_failed(silent_failure);
        const outcome got = borrow_guarded(l);
        if (got != outcome::taken) return got;
        const auto owned = l.guards.torch->memory_of(storage.get(), l.home);
        if (!owned) return own_once(l);
        if (l.out.empty() || lies_in(l.out, *owned)) {
            l.out.owner = py::detail::keep_object(storage.get(), &l.home);
            return outcome::taken;
        }
        if (owned == last && l.out.data() == last_data)  // not another's: it is like that
            return reaches_beyond(l.out.device()) ? outcome(outcome::raised) : own_once(l);
        last = owned;
        last_data = l.out.data();
    }
    return keeps_changing();
}

}  // namespace detail

/// Keeps the storage of a tensor besides what it was lent by (its `__dlpack__`), which keeps the tensor
/// alone: see `own_storage`. Memory that does not lie in it is somebody else's. False with an exception set.
TENON_COLD [[nodiscard]] inline bool keep_storage(PyObject* obj, const torch_library& torch,
                                                  interpreter& home, acquired& out) noexcept try {
    if (out.empty() || !out.owner) return true;
    ref storage = torch.storage_of(obj, home);
    const auto owned = storage ? torch.memory_of(storage.get(), home) : std::nullopt;
    if (!forget_answer()) return false;
    if (owned && detail::lies_in(out, *owned))
        out.owner = py::detail::keep_array(std::move(storage), std::move(out.owner), &home);
    return true;
} catch (...) {
    raise_caught();
    return false;
}

/// Whether the objects of a type that has a table can be borrowed by it. The borrowed struct has no flags:
/// whoever wants to write must see them, unless the library never sets one. Where lending runs code, what was
/// lent may be gone by then: it is kept instead.
TENON_HOT [[nodiscard]] inline bool lends(const type_plan& plan, bool writable) noexcept {
    return (plan.only_fills || !(writable || plan.genuine_table)) &&
           plan.table->dltensor_from_py_object_no_sync != nullptr;
}

/// Takes a tensor by the table of its type, asking what must be asked: borrowed if it can be and need not be
/// kept, else owned, and read-only then if it requires grad.
TENON_COLD [[nodiscard]] inline outcome take_carefully(PyObject* obj, const type_plan& plan, bool writable,
                                                       acquired& out) noexcept {
    out.ran_code = true;
    interpreter* const home = interpreter::current();
    if (home == nullptr) return outcome::raised;
    const bool borrows = !out.owning && lends(plan, writable);
    const bool has_storage = plan.genuine_table && plan.table->dltensor_from_py_object_no_sync != nullptr;
    const grad_rule grad = writable ? grad_rule::forbidden : borrows ? grad_rule::ignored : grad_rule::noted;
    // Copies: foreign code runs.
    const detail::loan l{obj, detail::terms_of(plan), plan.guards, grad, *home, out};
    if (borrows) return detail::borrow_guarded(l);
    if (has_storage) return detail::own_storage(l);
    const outcome got = detail::own_once(l);
    if (got != outcome::taken) return got;
    const verdict asked = ask_guards(obj, l.guards, l.grad, *home);
    if (asked == verdict::needs_grad) out.mark_gradient();
    if (asked != verdict::forbidden) return got;
    out.owner.reset();
    return outcome::raised;
}

/// Borrows on these terms alone, without asking the object anything, where its type `lends` and has no guards
/// that must be asked: nothing is kept, nothing is allocated.
TENON_HOT [[nodiscard]] inline outcome borrow_plainly(PyObject* obj, detail::table_terms terms, bool writable,
                                                      acquired& out) noexcept {
    outcome got = detail::call_borrow(obj, terms, out);
    if (got == outcome::taken && out.device().has_streams()) [[unlikely]]
        got = detail::note_stream_borrowed(obj, terms, out);
    if (got != outcome::taken) [[unlikely]]
        return got;
    const grad_rule grad = writable ? grad_rule::forbidden : grad_rule::ignored;
    // Another's table may show complex numbers as something else.
    const bool may_be_complex = !terms.only_fills || out.dtype().is_complex();
    return ask_flags(obj, terms.flags, grad, may_be_complex) == verdict::forbidden ? outcome::raised
                                                                                   : outcome::taken;
}

[[nodiscard]] inline outcome take(attempt& a) noexcept {
    if (a.plan.table_fault != nullptr) return refused("exchange table", a.plan.table_fault);
    if (a.plan.table == nullptr || !a.host_will_do()) return outcome::absent;
    const outcome got = take_carefully(a.obj, a.plan, a.writable, a.out);
    return got == outcome::taken ? py::detail::follow(a) : got;
}

}  // namespace tenon::py::exchange
