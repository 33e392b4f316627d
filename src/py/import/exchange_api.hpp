// src/py/import/exchange_api.hpp: the rung that calls the C exchange table a type publishes: no Python call
// at all.
#pragma once

#include "../library/all.hpp"
#include "exchange_probe.hpp"
#include "placing.hpp"
#include "plan_cache.hpp"

namespace tenon::py::exchange {

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

}  // namespace detail

/// What becomes of a tensor that requires grad.
enum class grad_rule : unsigned char {
    ignored,    ///< it is lent for reading
    noted,      ///< it comes out read-only
    forbidden,  ///< it was to be written to
};

/// What the guards said.
struct guard_verdict {
    bool allowed = true;  ///< otherwise an exception is set
    bool needs_grad = false;
};

namespace detail {

/// What may not be taken is raised here and now: no later rung may have a try, since PyTorch's own
/// `__dlpack__` lets negative views pass.
TENON_COLD inline guard_verdict forbid(const error& e) noexcept {
    raise(e, "tenon: cannot take this tensor: ");
    return {false, false};
}
TENON_COLD inline guard_verdict forbid_lazy(bool conjugate) noexcept {
    return forbid(conjugate
                      ? refused("data", "a conjugate view: its memory holds other numbers than it shows")
                            .with_advice("call .resolve_conj() first")
                      : refused("data", "a negative view: its memory holds other numbers than it shows")
                            .with_advice("call .resolve_neg() first"));
}
[[nodiscard]] inline guard_verdict judge_grad(grad_rule grad) noexcept {
    if (grad != grad_rule::forbidden) return {true, grad == grad_rule::noted};
    return forbid(refused("data", "it requires grad, so it may not be written to from outside")
                      .with_advice("pass .detach(), or take it for reading only"));
}

}  // namespace detail

/// Asks the object by its attributes, where they must be, whether its memory holds what it shows, and whether
/// it may be written to. Runs foreign code: whatever was borrowed is stale afterwards, and so may the answers
/// be. `ask_flags` has the last word where it can.
[[nodiscard]] inline guard_verdict ask_guards(PyObject* obj, const tensor_guards guards, grad_rule grad,
                                              const interpreter& names) noexcept {
    if (!guards.asked) return {};
    const nesting_level level;
    if (!level) return {false, false};
    if (const int lazy = guards.conjugate.ask(obj, names.is_conj); lazy != 0)
        return lazy > 0 ? detail::forbid_lazy(true) : guard_verdict{false, false};
    if (const int lazy = guards.negative.ask(obj, names.is_neg); lazy != 0)
        return lazy > 0 ? detail::forbid_lazy(false) : guard_verdict{false, false};
    if (grad == grad_rule::ignored) return {};
    const int needed = guards.requires_grad.ask(obj, names.requires_grad);
    if (needed < 0) return {false, false};
    return needed > 0 ? detail::judge_grad(grad) : guard_verdict{};
}

/// The same of what is known without running anything: to be asked right beside what it is asked about.
TENON_HOT [[nodiscard]] inline guard_verdict ask_flags(PyObject* obj, const torch_flags* flags,
                                                       grad_rule grad, bool may_be_complex = true) noexcept {
    if (flags == nullptr) return {};
    if (flags->is_lazy(obj, may_be_complex)) [[unlikely]]
        return detail::forbid_lazy(flags->is_conjugate(obj));
    if (grad != grad_rule::ignored && flags->requires_grad(obj)) [[unlikely]]
        return detail::judge_grad(grad);
    return {};
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
    keep_alive owner =
        py::detail::keep_managed(managed, true, &l.home);  // ours from here on, errors included
    if (PyErr_Occurred() != nullptr) return outcome::raised;
    const guard_verdict verdict = ask_flags(l.obj, l.terms.flags, l.grad);
    if (!verdict.allowed) return outcome::raised;
    foreign received(managed);
    const auto seen = received.describe();
    received.disown();
    if (!seen) return seen.error();
    const std::uint64_t flags = l.terms.immutable ? seen->flags | abi::flag::read_only : seen->flags;
    if (auto admitted = l.out.admit(seen->tensor, flags, seen->version); !admitted) return admitted;
    l.out.add_marks(tenon::detail::marks_of(managed));
    if (verdict.needs_grad) l.out.mark_gradient();
    if (l.out.device().has_streams() && !note_current_stream(*l.terms.table, false, l.out))
        return outcome::raised;
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
    if (auto ok = out.admit_here(t, flags, terms.table->header.version); !ok) [[unlikely]]
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
    if (!note_current_stream(*terms.table, terms.only_fills, out)) return outcome::raised;
    if (terms.only_fills) return outcome::taken;
    const device where = out.device();
    void* const stream = out.stream();
    if (const outcome got = call_borrow_again(obj, terms, out); !(got == outcome::taken)) return got;
    if (out.device() != where)
        return refused("device", "the tensor was moved while it was imported", out.device(), where);
    out.set_stream(stream);
    return outcome::taken;
}

/// A borrowing call, with the stream.
TENON_HOT [[nodiscard]] inline outcome borrow_once(PyObject* obj, table_terms terms, acquired& out) noexcept {
    const outcome got = call_borrow(obj, terms, out);
    if (!(got == outcome::taken) || !out.device().has_streams()) [[likely]]
        return got;
    return note_stream_borrowed(obj, terms, out);
}

/// The same out of line, for whoever is in no hurry.
TENON_COLD [[nodiscard]] inline outcome borrow_again(PyObject* obj, table_terms terms,
                                                     acquired& out) noexcept {
    return borrow_once(obj, terms, out);
}

/// How often something is taken anew that changed while it was looked at.
inline constexpr int most_rounds = 4;

TENON_COLD inline outcome keeps_changing() noexcept {
    raise(refused("data", "the tensor was given other memory while it was imported")
              .with_advice("let nothing else change it meanwhile"),
          "tenon: cannot take this tensor: ");
    return outcome::raised;
}

/// Borrows, and asks whether that is what it shows. Asking by attributes runs foreign code, and a borrowed
/// struct is good only until then: it is borrowed a second time, and must be the same.
TENON_COLD [[nodiscard]] inline outcome borrow_guarded(const loan& l) noexcept {
    acquired& out = l.out;
    for (int round = 0; round < most_rounds; ++round) {
        outcome got = borrow_again(l.obj, l.terms, out);
        if (!(got == outcome::taken)) return got;
        guard_verdict asked;
        const void* const data = out.data();
        const std::int64_t size = out.size();
        if (l.guards.asked) {
            asked = ask_guards(l.obj, l.guards, l.grad, l.home);
            if (!asked.allowed) return outcome::raised;
            got = borrow_again(l.obj, l.terms, out);
            if (!(got == outcome::taken)) return got;
        }
        const guard_verdict told = ask_flags(l.obj, l.terms.flags, l.grad);
        if (!told.allowed) return outcome::raised;
        if (asked.needs_grad || told.needs_grad) out.mark_gradient();
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
    raise(refused("data", "the tensor reaches beyond its storage, which was made smaller")
              .with_advice("resize the storage back, or pass a new tensor"),
          "tenon: cannot take this tensor: ");
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
        if (!(got == outcome::taken)) return got;
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

/// Owning import, with the stream that the library works on. A tensor that requires grad comes out read-only.
[[nodiscard]] inline outcome own(PyObject* obj, const type_plan& plan, bool writable, interpreter& home,
                                 acquired& out) noexcept {
    const detail::loan l{obj,         detail::terms_of(plan),
                         plan.guards, writable ? grad_rule::forbidden : grad_rule::noted,
                         home,        out};  // copies: foreign code runs
    if (plan.genuine_table && l.terms.table->dltensor_from_py_object_no_sync != nullptr)
        return detail::own_storage(l);
    const outcome got = detail::own_once(l);
    if (!(got == outcome::taken)) return got;
    const guard_verdict verdict = ask_guards(obj, l.guards, l.grad, home);
    if (verdict.needs_grad) out.mark_gradient();
    if (verdict.allowed) return got;
    out.owner.reset();
    return outcome::raised;
}

/// The borrowing import where the object must be asked, or its flags must be seen.
TENON_COLD [[nodiscard]] inline outcome borrow_carefully(PyObject* obj, const type_plan& plan, bool writable,
                                                         acquired& out) noexcept {
    out.ran_code = true;
    interpreter* const home = interpreter::current();
    if (home == nullptr) return outcome::raised;
    const detail::loan l{obj,         detail::terms_of(plan),
                         plan.guards, writable ? grad_rule::forbidden : grad_rule::ignored,
                         *home,       out};  // copies: foreign code runs
    // The borrowed struct has no flags: whoever wants to write must see them, unless the library never sets
    // one. Where lending runs code, what was lent may be gone by then: it is kept instead.
    if (l.terms.table->dltensor_from_py_object_no_sync == nullptr ||
        (!l.terms.only_fills && (writable || plan.genuine_table)))
        return own(obj, plan, writable, *home, out);
    return detail::borrow_guarded(l);
}

/// Whether the objects of a type can be borrowed on these terms alone, without asking them anything.
TENON_HOT [[nodiscard]] inline bool lends_plainly(const type_plan& plan, bool writable) noexcept {
    return !plan.guards.asked && (plan.only_fills || !(writable || plan.genuine_table)) &&
           plan.table->dltensor_from_py_object_no_sync != nullptr;
}
TENON_HOT [[nodiscard]] inline outcome borrow_plainly(PyObject* obj, detail::table_terms terms, bool writable,
                                                      acquired& out) noexcept {
    const outcome got = detail::borrow_once(obj, terms, out);
    if (!(got == outcome::taken)) [[unlikely]]
        return got;
    const grad_rule grad = writable ? grad_rule::forbidden : grad_rule::ignored;
    // Another's table may show complex numbers as something else.
    const bool may_be_complex = !terms.only_fills || out.dtype().is_complex();
    return ask_flags(obj, terms.flags, grad, may_be_complex).allowed ? outcome::taken : outcome::raised;
}

/// Borrowing import: nothing is kept, nothing is allocated. The caller has seen that `plan.table` is there.
TENON_COLD [[nodiscard]] inline outcome borrow(PyObject* obj, const type_plan& plan, bool writable,
                                               acquired& out) noexcept {
    return lends_plainly(plan, writable) ? borrow_plainly(obj, detail::terms_of(plan), writable, out)
                                         : borrow_carefully(obj, plan, writable, out);
}

[[nodiscard]] inline outcome take(attempt& a) noexcept {
    if (a.plan.table_fault != nullptr) return refused("exchange table", a.plan.table_fault);
    if (a.plan.table == nullptr || !a.host_will_do()) return outcome::absent;
    if (!a.out.owning) return borrow(a.obj, a.plan, a.writable, a.out);
    const outcome got = own(a.obj, a.plan, a.writable, a.here, a.out);
    return got == outcome::taken ? py::detail::follow(a) : got;
}

}  // namespace tenon::py::exchange
