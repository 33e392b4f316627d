// tenon/py/import/exchange_api.hpp: the rung that calls the C exchange table a type publishes: no Python call
// at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <tenon/abi/dlpack.hpp>
#include <tenon/core/readable.hpp>
#include <tenon/py/acquired.hpp>
#include <tenon/py/call.hpp>
#include <tenon/py/capsule.hpp>
#include <tenon/py/current_stream.hpp>
#include <tenon/py/interpreter.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/py/type_plan.hpp>

namespace tenon::py::exchange {

namespace detail {

/// Follows `prev_api` to the major version we speak; a chain that does not end is a lie.
[[nodiscard]] inline const abi::exchange_api* usable_table(const void* published,
                                                           const char*& fault) noexcept {
    const auto* header = static_cast<const abi::exchange_api_header*>(published);
    for (int steps = 0; header != nullptr && steps < 16; ++steps, header = header->prev_api) {
        if (!tenon::detail::is_readable<sizeof *header>(header)) {
            fault = "the pointer to the table cannot be one";
            return nullptr;
        }
        if (header->version.major != abi::dlpack_major) continue;
        const auto* table = reinterpret_cast<const abi::exchange_api*>(header);
        if (!tenon::detail::is_readable<sizeof *table>(table) ||
            table->managed_tensor_from_py_object_no_sync == nullptr) {
            fault = "a mandatory function of the table is null";
            return nullptr;
        }
        return table;
    }
    fault = "no version of the table has major version 1";
    return nullptr;
}

/// The pointer an attribute stands for: a capsule (1.3) or, under the 1.2 name, also an integer.
[[nodiscard]] inline const void* published_pointer(PyObject* attribute, bool int_allowed) noexcept {
    if (PyCapsule_CheckExact(attribute)) {
        if (PyCapsule_IsValid(attribute, capsule_exchange_api) == 0) return nullptr;
        return PyCapsule_GetPointer(attribute, capsule_exchange_api);
    }
    if (!int_allowed || !PyLong_CheckExact(attribute)) return nullptr;
    const void* address = PyLong_AsVoidPtr(attribute);
    if (PyErr_Occurred() != nullptr) PyErr_Clear();
    return address;
}

/// How far along the MRO the class that defines `name` is; -1 when none does.
[[nodiscard]] inline Py_ssize_t definition_depth(PyTypeObject* type, PyObject* name) noexcept {
    const ref mro = ref::borrow(type->tp_mro);  // a key's __eq__ may give the type another one
    const Py_ssize_t n = mro && PyTuple_Check(mro.get()) ? PyTuple_GET_SIZE(mro.get()) : 0;
    for (Py_ssize_t i = 0; i < n; ++i) {
        auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro.get(), i));
#if PY_VERSION_HEX >= 0x030C0000
        const ref dict = ref::take(PyType_GetDict(base));
#else
        const ref dict = ref::borrow(base->tp_dict);
#endif
        const int found = dict ? call::dict_contains(dict.get(), name) : 0;
        if (found > 0) return i;
        if (found < 0) PyErr_Clear();
    }
    return -1;
}

}  // namespace detail

/// Looks for a table on the type (never the instance) and notes it in the plan.
inline void probe(PyTypeObject* type, const interpreter& names, type_plan& plan) noexcept {
    PyObject* const spellings[] = {names.exchange_api, names.exchange_api_1_2};
    for (PyObject* const name : spellings) {
        const ref attribute = ref::take(call::type_attr(type, name));
        if (!attribute) continue;
        const void* const published =
            detail::published_pointer(attribute.get(), name == names.exchange_api_1_2);
        if (published == nullptr) continue;
        // A subclass that overrides `__dlpack__` below the class that brought the table means the override.
        const Py_ssize_t method = detail::definition_depth(type, names.dlpack);
        if (method >= 0 && method < detail::definition_depth(type, name)) {
            plan.table_fault = "the type overrides __dlpack__ of the class that has the table";
            return;
        }
        plan.table = detail::usable_table(published, plan.table_fault);
        if (plan.table == nullptr) continue;
        plan.table_fault = nullptr;
        return;
    }
}

namespace detail {

TENON_COLD [[nodiscard]] inline rung_result call_failed(error& why, const char* problem) noexcept {
    if (PyErr_Occurred() != nullptr) return rung_result::raised;
    why = refused("exchange table", problem);
    return rung_result::refused;
}

/// Calls a function of the table. One that throws C++ exceptions breaks the rules, but not us.
template <class Function, class Out>
TENON_HOT [[nodiscard]] inline bool succeeds(Function function, PyObject* obj, Out* out) noexcept {
    try {
        return foreign_code([&] { return function(obj, out) == 0; });
    } catch (...) {
        return false;
    }
}

inline constexpr const char* silent_failure = "the call failed without an exception";

/// False only when the memory cannot be that of a negative view that ordinary view operations can make: those
/// start from the imaginary part of a complex tensor, so every step along them is an even number of elements,
/// or they have a single element, or begin at an odd one. Asking PyTorch costs as much as the whole import,
/// and this spares it for ordinary tensors. `odd_steps` has bit 0 set if any step that is taken is odd.
TENON_HOT [[nodiscard]] inline bool may_be_negative(const abi::dl_tensor& t,
                                                    std::int64_t odd_steps) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(t.data) + t.byte_offset;
    return (odd_steps & 1) == 0 || (address & (2 * std::uintptr_t{dtype(t.dtype).itemsize()} - 1)) != 0;
}

[[nodiscard]] inline rung_result own_once(PyObject* obj, const abi::exchange_api* table, bool immutable,
                                          interpreter& home, acquired& out, import_policy policy,
                                          error& why) noexcept {
    abi::managed_tensor_versioned* managed = nullptr;
    if (!succeeds(table->managed_tensor_from_py_object_no_sync, obj, &managed))
        return call_failed(why, silent_failure);
    if (managed == nullptr) return call_failed(why, "the call succeeded without a tensor");
    keep_alive owner = py::detail::keep_managed(managed, true, &home);  // ours from here on, errors included
    if (PyErr_Occurred() != nullptr) return rung_result::raised;
    foreign received(managed);
    const auto seen = received.describe();
    received.disown();
    if (!seen) {
        why = seen.error();
        return rung_result::refused;
    }
    const std::uint64_t flags = immutable ? seen->flags | abi::flag::read_only : seen->flags;
    if (auto admitted = out.admit(seen->tensor, flags, seen->version, policy); !admitted) {
        why = admitted.error();
        return rung_result::refused;
    }
    if (out.device().has_streams() && !note_current_stream(*table, false, out)) return rung_result::raised;
    out.owner = std::move(owner);
    return rung_result::taken;
}

/// What a borrowing call needs of a plan, read off it before foreign code runs: the plan may be another
/// type's afterwards.
struct borrow_terms {
    const abi::exchange_api* table;
    bool immutable;
    bool honest;  ///< a library that does not return success with an exception set
};
TENON_HOT [[nodiscard]] inline borrow_terms terms_of(const type_plan& plan) noexcept {
    return {plan.table, plan.immutable, plan.honest_borrow};
}

/// A borrowing call. `suspicious` tells whether the guards must be asked.
TENON_HOT [[nodiscard]] inline rung_result borrow_once(PyObject* obj, borrow_terms terms, acquired& out,
                                                       import_policy policy, bool& suspicious,
                                                       error& why) noexcept {
    abi::dl_tensor t{};
    if (!succeeds(terms.table->dltensor_from_py_object_no_sync, obj, &t)) [[unlikely]]
        return call_failed(why, silent_failure);
    if (!terms.honest) [[unlikely]] {
        out.ran_code = true;
        if (PyErr_Occurred() != nullptr) return rung_result::raised;
    }
    const std::uint64_t flags = terms.immutable ? abi::flag::read_only : 0;
    std::int64_t odd_steps = 0;
    if (auto ok = out.admit(t, flags, terms.table->header.version, policy, &odd_steps); !ok) [[unlikely]] {
        why = ok.error();
        return rung_result::refused;
    }
    suspicious = dtype(t.dtype).is_complex() || may_be_negative(t, odd_steps);
    if (out.device().has_streams() && !note_current_stream(*terms.table, terms.honest, out))
        return rung_result::raised;
    return rung_result::taken;
}

}  // namespace detail

/// What the guards said.
struct guard_verdict {
    bool allowed;  ///< otherwise an exception is set
    bool needs_grad;
};

/// Which of the guards are to be asked.
struct guard_questions {
    bool conjugate = false;
    bool negative = false;
    bool grad = false;
    bool writable = false;  ///< then requiring grad is not allowed
};

/// Asks the object whether its memory holds what it shows, and whether it may be written to. What may not be
/// taken is raised here and now: no later rung may have a try, since PyTorch's own `__dlpack__` lets negative
/// views pass.
TENON_COLD [[nodiscard]] inline guard_verdict ask_guards(PyObject* obj, guard_questions ask) noexcept {
    const interpreter* const names = interpreter::current();
    if (names == nullptr) return {false, false};
    const type_plan* const plan = find_plan(Py_TYPE(obj));
    const tensor_guards guards = plan != nullptr ? plan->guards : tensor_guards::find(Py_TYPE(obj), *names);
    guard_verdict verdict{true, false};
    const auto forbid = [&](const error& e) {
        raise(e, "tenon: cannot take this tensor: ");
        verdict.allowed = false;
    };
    const auto yes = [&](const object_query& flag, PyObject* name) {
        if (!verdict.allowed) return false;
        const int answer = flag.ask(obj, name);
        if (answer < 0) verdict.allowed = false;
        return answer > 0;
    };
    if (ask.conjugate && yes(guards.conjugate, names->is_conj)) {
        forbid(refused("data", "a conjugate view: its memory holds other numbers than it shows")
                   .with_advice("call .resolve_conj() first"));
    }
    if (ask.negative && yes(guards.negative, names->is_neg)) {
        forbid(refused("data", "a negative view: its memory holds other numbers than it shows")
                   .with_advice("call .resolve_neg() first"));
    }
    if (ask.grad && yes(guards.requires_grad, names->requires_grad)) {
        verdict.needs_grad = true;
        if (ask.writable) {
            forbid(refused("data", "it requires grad, so it may not be written to from outside")
                       .with_advice("pass .detach(), or take it for reading only"));
        }
    }
    return verdict;
}

namespace detail {

/// Borrows, and keeps the storage behind the tensor alive. The managed struct of PyTorch's table keeps the
/// tensor instead, which `t.data = ...`, `t.set_()` and `module.to()` point to other memory, freeing what we
/// were given.
[[nodiscard]] inline rung_result own_storage(PyObject* obj, const type_plan& plan, interpreter& home,
                                             acquired& out, import_policy policy, error& why) noexcept {
    const object_query storage_of = plan.guards.storage;
    const borrow_terms terms = terms_of(plan);
    ref storage;
    for (int round = 0; round < 3; ++round) {
        storage = storage_of.fetch(obj, home.untyped_storage);
        if (!storage) return rung_result::raised;
        bool unused = false;
        const rung_result got = borrow_once(obj, terms, out, policy, unused, why);
        if (got != rung_result::taken) return got;
        if (!storage_of.may_interleave()) break;
        // Another thread may have given the tensor other memory between the two.
        const ref still = storage_of.fetch(obj, home.untyped_storage);
        if (!still) return rung_result::raised;
        if (still.get() == storage.get()) break;
    }
    out.owner = py::detail::keep_object(storage.get(), &home);
    return rung_result::taken;
}

}  // namespace detail

/// Owning import, with the stream that the library works on. A tensor that requires grad comes out read-only.
[[nodiscard]] inline rung_result own(PyObject* obj, const type_plan& plan, bool writable,
                                     import_policy policy, interpreter& home, acquired& out,
                                     error& why) noexcept {
    const bool guarded = plan.guarded;  // read before foreign code runs: the plan may be another's afterwards
    const bool by_storage = plan.honest_borrow && plan.guards.storage.exists() &&
                            plan.table->dltensor_from_py_object_no_sync != nullptr;
    const rung_result got = by_storage
                                ? detail::own_storage(obj, plan, home, out, policy, why)
                                : detail::own_once(obj, plan.table, plan.immutable, home, out, policy, why);
    if (got != rung_result::taken || !guarded) return got;
    const guard_verdict verdict = ask_guards(
        obj, {.conjugate = out.dtype().is_complex(), .negative = true, .grad = true, .writable = writable});
    if (verdict.needs_grad) out.mark_read_only();
    if (verdict.allowed) return got;
    out.owner.reset();
    return rung_result::raised;
}

/// Asks whether what was borrowed is what it shows. A borrowed struct is good only until other code has run,
/// so it is then borrowed a second time.
TENON_COLD [[nodiscard]] inline rung_result ask_and_borrow_again(PyObject* obj, detail::borrow_terms terms,
                                                                 import_policy policy, acquired& out,
                                                                 error& why) noexcept {
    out.ran_code = true;
    const auto verdict = ask_guards(obj, {.conjugate = out.dtype().is_complex(), .negative = true});
    if (!verdict.allowed) return rung_result::raised;
    bool unused = false;
    return detail::borrow_once(obj, terms, out, policy, unused, why);
}

/// The borrowing import where something must be asked of the object, or its flags must be seen.
TENON_COLD [[nodiscard]] inline rung_result borrow_carefully(PyObject* obj, const type_plan& plan_in_use,
                                                             bool writable, import_policy policy,
                                                             acquired& out, error& why) noexcept {
    const type_plan plan = plan_in_use;  // a copy: foreign code runs
    out.ran_code = true;
    // The borrowed struct has no flags: whoever wants to write must see them, unless the library never sets
    // one.
    if (plan.table->dltensor_from_py_object_no_sync == nullptr || (writable && !plan.honest_borrow)) {
        interpreter* const home = interpreter::current();
        return home != nullptr ? own(obj, plan, writable, policy, *home, out, why) : rung_result::raised;
    }
    if (plan.guarded && writable) {
        const auto verdict = ask_guards(obj, {.grad = true, .writable = true});
        if (!verdict.allowed) return rung_result::raised;
    }
    bool suspicious = false;
    const rung_result got = detail::borrow_once(obj, detail::terms_of(plan), out, policy, suspicious, why);
    if (got != rung_result::taken || !plan.guarded || !suspicious) return got;
    return ask_and_borrow_again(obj, detail::terms_of(plan), policy, out, why);
}

/// Borrowing import: nothing is kept, nothing is allocated. The caller has seen that `plan.table` is there.
TENON_HOT [[nodiscard]] inline rung_result borrow(PyObject* obj, const type_plan& plan, bool writable,
                                                  import_policy policy, acquired& out, error& why) noexcept {
    const detail::borrow_terms terms = detail::terms_of(plan);
    const bool guarded = plan.guarded;
    if (writable || terms.table->dltensor_from_py_object_no_sync == nullptr) [[unlikely]]
        return borrow_carefully(obj, plan, writable, policy, out, why);
    bool suspicious = false;
    const rung_result got = detail::borrow_once(obj, terms, out, policy, suspicious, why);
    if (got != rung_result::taken || !guarded || !suspicious) [[likely]]
        return got;
    return ask_and_borrow_again(obj, terms, policy, out, why);
}

}  // namespace tenon::py::exchange
