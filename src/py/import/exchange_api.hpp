// src/py/import/exchange_api.hpp: the rung that calls the C exchange table a type publishes: no Python call
// at all.
#pragma once

#include "exchange_probe.hpp"
#include "placing.hpp"

namespace tenon::py::exchange {

namespace detail {

TENON_COLD [[nodiscard]] inline outcome call_failed(
    const char* problem = "the call failed without an exception") noexcept {
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

/// What may not be taken is raised here and now, and this is false: no later rung may have a try, since
/// PyTorch's own `__dlpack__` lets negative views pass.
TENON_COLD inline bool forbid(const error& e) noexcept {
    raise(e, "tenon: cannot take this tensor: ");
    return false;
}
TENON_COLD inline bool forbid_lazy(bool conjugate) noexcept {
    return forbid(conjugate
                      ? refused("data", "a conjugate view: its memory holds other numbers than it shows")
                            .with_advice("call .resolve_conj() first")
                      : refused("data", "a negative view: its memory holds other numbers than it shows")
                            .with_advice("call .resolve_neg() first"));
}
TENON_COLD inline bool judge_grad(bool writable, bool* needs_grad) noexcept {
    if (!writable) return *needs_grad = true;
    return forbid(refused("data", "it requires grad, so it may not be written to from outside")
                      .with_advice("pass .detach(), or take it for reading only"));
}

}  // namespace detail

/// Asks the object by its attributes, where they must be, whether its memory holds what it shows, and whether
/// it may be written to, if it is to be; else `needs_grad` notes that it requires grad, where somebody wants
/// to know. False with an exception set. Runs foreign code: whatever was borrowed is stale afterwards, and so
/// may the answers be. `ask_flags` has the last word where it can.
[[nodiscard]] inline bool ask_guards(const attempt& a, bool* needs_grad = nullptr) noexcept {
    const tensor_guards& guards = a.plan.guards;
    if (!guards.asked) return true;
    const nesting_level level;
    if (!level) return false;
    if (const int lazy = guards.conjugate.ask(a.obj, a.here.is_conj); lazy != 0)
        return lazy > 0 && detail::forbid_lazy(true);
    if (const int lazy = guards.negative.ask(a.obj, a.here.is_neg); lazy != 0)
        return lazy > 0 && detail::forbid_lazy(false);
    if (!a.writable && needs_grad == nullptr) return true;
    const int needed = guards.requires_grad.ask(a.obj, a.here.requires_grad);
    return needed == 0 || (needed > 0 && detail::judge_grad(a.writable, needs_grad));
}

/// The same of what is known without running anything: to be asked right beside what it is asked about.
TENON_HOT [[nodiscard]] inline bool ask_flags(PyObject* obj, const torch_flags* flags, bool writable,
                                              bool* needs_grad = nullptr,
                                              bool may_be_complex = true) noexcept {
    if (flags == nullptr) return true;
    if (flags->is_lazy(obj, may_be_complex)) [[unlikely]]
        return detail::forbid_lazy(flags->is_conjugate(obj));
    if ((writable || needs_grad != nullptr) && flags->requires_grad(obj)) [[unlikely]]
        return detail::judge_grad(writable, needs_grad);
    return true;
}

/// What a call of the table needs of a plan.
struct table_terms {
    const abi::exchange_api* table = nullptr;
    const torch_flags* flags = nullptr;
    bool immutable = false;
};
TENON_HOT [[nodiscard]] inline table_terms terms_of(const type_plan& plan) noexcept {
    return {plan.table, plan.guards.flags, plan.immutable};
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
    static void note(const type_plan& plan) noexcept {
        if (!is_used || plan.tag == 0 || !plan.lends_plainly() || !plan.guards.torch->is_plain(plan.type))
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

/// A call of the borrowing function, and nothing else. PyTorch's own only `fills` a struct in: it neither
/// runs code nor succeeds with an exception set.
TENON_HOT [[nodiscard]] inline outcome call_borrow(PyObject* obj, const table_terms& terms, bool fills,
                                                   acquired& out) noexcept {
    abi::dl_tensor t{};
    const auto function = terms.table->dltensor_from_py_object_no_sync;
    if (function == nullptr) [[unlikely]]  // it was there before others ran
        return detail::call_failed(detail::null_function);
    if (!detail::succeeds(function, obj, &t, fills)) [[unlikely]]
        return detail::call_failed();
    if (!fills) {
        out.ran_code = true;
        if (PyErr_Occurred() != nullptr) return outcome::raised;
    }
    const std::uint64_t flags = terms.immutable ? abi::flag::read_only : 0;
    if (auto ok = out.admit_here({t, flags, terms.table->header.version}); !ok) [[unlikely]]
        return ok;
    return outcome::taken;
}

/// Borrows on these terms alone, of a type that `lends_plainly`, without asking the object anything: nothing
/// is kept, nothing is allocated.
TENON_HOT [[nodiscard]] inline outcome borrow_plainly(PyObject* obj, const table_terms& terms, bool writable,
                                                      acquired& out) noexcept {
    if (const outcome got = call_borrow(obj, terms, true, out); got != outcome::taken) [[unlikely]]
        return got;
    if (out.device().has_streams() && !note_lent_stream(terms.table->current_work_stream, out)) [[unlikely]]
        return outcome::raised;
    const bool allowed = ask_flags(obj, terms.flags, writable, nullptr, out.dtype().is_complex());
    return allowed ? outcome::taken : outcome::raised;
}

namespace detail {

TENON_COLD [[nodiscard]] inline outcome call_borrow(attempt& a) noexcept {
    return exchange::call_borrow(a.obj, terms_of(a.plan), a.plan.only_fills, a.out);
}

/// A borrowing call, with the stream that the library works on.
[[nodiscard]] inline outcome borrow_once(attempt& a) noexcept {
    acquired& out = a.out;
    const outcome first = call_borrow(a);
    if (first != outcome::taken || !out.device().has_streams()) return first;
    if (!note_current_stream(a.plan.table->current_work_stream, a.plan.only_fills, out))
        return outcome::raised;
    if (a.plan.only_fills) return outcome::taken;
    // A function that we do not know may run anything: what was lent is stale, and borrowed once more.
    const device where = out.device();
    void* const stream = out.stream();
    if (const outcome got = call_borrow(a); got != outcome::taken) return got;
    if (out.device() != where)
        return refused("device", "the tensor was moved while it was imported", out.device(), where);
    out.set_stream(stream);
    return outcome::taken;
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
[[nodiscard]] inline outcome borrow_guarded(attempt& a, bool* needs_grad) noexcept {
    acquired& out = a.out;
    for (int round = 0; round < most_rounds; ++round) {
        outcome got = borrow_once(a);
        if (got != outcome::taken) return got;
        const void* const data = out.data();
        const std::int64_t size = out.size();
        if (!ask_guards(a, needs_grad)) return outcome::raised;
        if (a.plan.guards.asked) got = borrow_once(a);
        if (got != outcome::taken) return got;
        if (!ask_flags(a.obj, a.plan.guards.flags, a.writable, needs_grad)) return outcome::raised;
        if (out.data() == data && out.size() == size) return outcome::taken;
    }
    return keeps_changing();
}

/// Takes the managed struct that the table gives. What must be asked by attributes is not asked.
[[nodiscard]] inline outcome own_once(attempt& a, bool* needs_grad) noexcept {
    abi::managed_tensor_versioned* managed = nullptr;
    const auto function = a.plan.table->managed_tensor_from_py_object_no_sync;
    if (function == nullptr) return call_failed(null_function);
    if (!succeeds(function, a.obj, &managed)) return call_failed();
    if (managed == nullptr) return call_failed("the call succeeded without a tensor");
    // Ours from here on, errors included.
    keep_alive owner = py::detail::keep_managed(managed, true, &a.here);
    if (PyErr_Occurred() != nullptr || !ask_flags(a.obj, a.plan.guards.flags, a.writable, needs_grad))
        return outcome::raised;
    const auto seen = foreign::describe(managed, true);
    if (!seen) return seen.error();
    const std::uint64_t flags = a.plan.immutable ? seen->flags | abi::flag::read_only : seen->flags;
    if (auto admitted = a.out.admit({seen->tensor, flags, seen->version}); !admitted) return admitted;
    a.out.add_marks(tenon::detail::marks_of(managed));
    if (!note_current_stream(a.plan.table->current_work_stream, false, a.out)) return outcome::raised;
    a.out.owner = std::move(owner);
    return outcome::taken;
}
[[nodiscard]] inline outcome own_guarded(attempt& a, bool* needs_grad) noexcept {
    const outcome got = own_once(a, needs_grad);
    if (got != outcome::taken || ask_guards(a, needs_grad)) return got;
    a.out.owner.reset();
    return outcome::raised;
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

/// Borrows, and keeps the storage behind the tensor alive. The managed struct of PyTorch's table keeps the
/// tensor instead, which `t.data = ...`, `t.set_()` and `module.to()` point to other memory, freeing what we
/// were given.
///
/// The storage is had before the memory is borrowed, and other code may have run between the two and in them
/// (a collector's finalizers, another thread): what counts is that the memory lies in the storage that is
/// held, whatever the tensor points to by now. Where that cannot be said (an object that is no storage, or
/// one that does not show addresses), the table's owning call has to do.
[[nodiscard]] inline outcome own_storage(attempt& a, bool* needs_grad) noexcept {
    const torch_library& torch = *a.plan.guards.torch;
    std::optional<torch_library::memory> last;
    const void* last_data = nullptr;
    for (int round = 0; round < most_rounds; ++round) {
        const ref storage = torch.storage_of(a.obj, a.here);
        if (!storage) return call_failed();
        if (const outcome got = borrow_guarded(a, needs_grad); got != outcome::taken) return got;
        const auto owned = torch.memory_of(storage.get(), a.here);
        if (!owned) return own_once(a, needs_grad);
        if (a.out.empty() || lies_in(a.out, *owned)) {
            a.out.owner = py::detail::keep_object(storage.get(), &a.here);
            return outcome::taken;
        }
        if (owned == last && a.out.data() == last_data) {  // not another's: it is like that
            // Where what a storage shows is its memory, it has been made smaller (`storage.resize_`).
            const device where = a.out.device();
            if (!where.is_host_accessible() && !where.has_streams()) return own_once(a, needs_grad);
            (void)forbid(refused("data", "the tensor reaches beyond its storage, which was made smaller")
                             .with_advice("resize the storage back, or pass a new tensor"));
            return outcome::raised;
        }
        last = owned;
        last_data = a.out.data();
    }
    return keeps_changing();
}

}  // namespace detail

/// Keeps the storage of a tensor besides what it was lent by (its `__dlpack__`), which keeps the tensor
/// alone: see `own_storage`. Memory that does not lie in it is somebody else's. False with an exception set.
[[nodiscard]] inline bool keep_storage(attempt& a) noexcept try {
    const torch_library* const torch = a.plan.guards.torch;
    if (torch == nullptr || a.out.empty() || !a.out.owner) return true;
    ref storage = torch->storage_of(a.obj, a.here);
    const auto owned = storage ? torch->memory_of(storage.get(), a.here) : std::nullopt;
    if (!forget_answer()) return false;
    if (owned && detail::lies_in(a.out, *owned))
        a.out.owner = py::detail::keep_array(std::move(storage), std::move(a.out.owner), &a.here);
    return true;
} catch (...) {
    raise_caught();
    return false;
}

/// Takes a tensor by the table of its type, asking what must be asked: borrowed if it can be and need not be
/// kept, else owned, and read-only then if it requires grad. A borrowed struct has no flags: whoever wants to
/// write must see them, unless the library never sets one. Where lending runs code, what was lent may be gone
/// by then: it is kept instead.
[[nodiscard]] inline outcome take(attempt& a) noexcept {
    const type_plan& plan = a.plan;
    if (plan.table_fault != nullptr) return refused("exchange table", plan.table_fault);
    if (plan.table == nullptr || !a.host_will_do()) return outcome::absent;
    const bool can_lend = plan.table->dltensor_from_py_object_no_sync != nullptr;
    const bool lends = can_lend && !a.out.owning && (plan.only_fills || !(a.writable || plan.genuine_table));
    bool needs_grad = false;
    outcome got = lends                            ? detail::borrow_guarded(a, nullptr)
                  : can_lend && plan.genuine_table ? detail::own_storage(a, &needs_grad)
                                                   : detail::own_guarded(a, &needs_grad);
    if (got != outcome::taken) return got;
    if (needs_grad) a.out.mark_gradient();
    return py::detail::follow(a);
}

}  // namespace tenon::py::exchange
