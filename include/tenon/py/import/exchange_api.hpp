// tenon/py/import/exchange_api.hpp: the rung that calls the C exchange table a type publishes: no Python call at all.
#pragma once

#include <cstdint>

#include <tenon/abi/dlpack.hpp>
#include <tenon/py/acquired.hpp>
#include <tenon/py/capsule.hpp>
#include <tenon/py/interpreter.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/py/type_plan.hpp>

namespace tenon::py::exchange {

namespace detail {

/// Follows `prev_api` to the major version we speak; a chain that does not end is a lie.
[[nodiscard]] inline const abi::exchange_api* usable_table(const void* published, const char*& fault) noexcept {
    const auto* header = static_cast<const abi::exchange_api_header*>(published);
    for (int steps = 0; header != nullptr && steps < 16; ++steps, header = header->prev_api) {
        if (tenon::detail::is_implausible(header) || reinterpret_cast<std::uintptr_t>(header) % alignof(void*) != 0) {
            fault = "the pointer to the table cannot be one";
            return nullptr;
        }
        if (header->version.major != abi::dlpack_major) continue;
        const auto* table = reinterpret_cast<const abi::exchange_api*>(header);
        if (table->managed_tensor_from_py_object_no_sync == nullptr) {
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
    PyObject* const mro = type->tp_mro;
    const Py_ssize_t n = mro != nullptr && PyTuple_Check(mro) ? PyTuple_GET_SIZE(mro) : 0;
    for (Py_ssize_t i = 0; i < n; ++i) {
        auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i));
#if PY_VERSION_HEX >= 0x030C0000
        const ref dict = ref::take(PyType_GetDict(base));
#else
        const ref dict = ref::borrow(base->tp_dict);
#endif
        const int found = dict ? PyDict_Contains(dict.get(), name) : 0;
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
        const ref attribute = ref::take(lookup_on_type(type, name));
        if (!attribute) continue;
        const void* const published = detail::published_pointer(attribute.get(), name == names.exchange_api_1_2);
        if (published == nullptr) continue;
        // A subclass that overrides `__dlpack__` below the class that brought the table means the override.
        const Py_ssize_t method = detail::definition_depth(type, names.dlpack);
        if (method >= 0 && method < detail::definition_depth(type, name)) {
            plan.table_fault = "the type overrides __dlpack__ of the class that has the table";
            return;
        }
        plan.table = detail::usable_table(published, plan.table_fault);
        if (plan.table != nullptr) break;
    }
    if (plan.table == nullptr) return;
    // PyTorch's table skips the checks its __dlpack__ makes: conjugate and negative views share memory with
    // other numbers, and writing behind autograd's back is refused there. We ask in its place.
    plan.conjugate = object_flag::find(type, names.is_conj);
    plan.negative = object_flag::find(type, names.is_neg);
    plan.requires_grad = object_flag::find(type, names.requires_grad);
    plan.guarded = plan.conjugate.exists() || plan.negative.exists() || plan.requires_grad.exists();
}

namespace detail {

[[nodiscard]] inline rung_result call_failed(error& why, const char* problem) noexcept {
    if (PyErr_Occurred() != nullptr) return rung_result::raised;
    why = refused("exchange table", problem);
    return rung_result::refused;
}

[[nodiscard]] inline rung_result borrow_once(PyObject* obj, const type_plan& plan, acquired& out,
                                             import_policy policy, error& why) noexcept {
    abi::dl_tensor t{};
    if (plan.table->dltensor_from_py_object_no_sync(obj, &t) != 0) [[unlikely]]
        return call_failed(why, "the call failed without an exception");
    if (PyErr_Occurred() != nullptr) [[unlikely]]
        return rung_result::raised;
    const std::uint64_t flags = plan.immutable ? abi::flag::read_only : 0;
    if (auto ok = out.admit(t, flags, plan.table->header.version, policy); !ok) [[unlikely]] {
        why = ok.error();
        return rung_result::refused;
    }
    return rung_result::taken;
}

[[nodiscard]] inline rung_result own_once(PyObject* obj, const type_plan& plan, interpreter* home, acquired& out,
                                          import_policy policy, error& why) noexcept {
    abi::managed_tensor_versioned* managed = nullptr;
    if (plan.table->managed_tensor_from_py_object_no_sync(obj, &managed) != 0) [[unlikely]]
        return call_failed(why, "the call failed without an exception");
    if (managed == nullptr) [[unlikely]]
        return call_failed(why, "the call succeeded without a tensor");
    keep_alive owner = py::detail::keep_managed(managed, true, home);  // ours from here on, errors included
    if (PyErr_Occurred() != nullptr) [[unlikely]]
        return rung_result::raised;
    foreign received(managed);
    const auto seen = received.describe();
    received.disown();
    if (!seen) {
        why = seen.error();
        return rung_result::refused;
    }
    const std::uint64_t flags = plan.immutable ? seen->flags | abi::flag::read_only : seen->flags;
    if (auto ok = out.admit(seen->tensor, flags, seen->version, policy); !ok) {
        why = ok.error();
        return rung_result::refused;
    }
    out.owner = std::move(owner);
    return rung_result::taken;
}

/// False only when the memory cannot be that of a negative view that ordinary view operations can make: those
/// start from the imaginary part of a complex tensor, so they step over the real parts (the strides show it),
/// or have a single element, or begin at an odd element. Asking PyTorch costs as much as the whole import, and
/// this spares it for ordinary contiguous tensors.
[[nodiscard]] inline bool may_be_negative(const tensor_ref& t) noexcept {
    if (t.size() <= 1) return t.size() == 1;
    std::int64_t step = 1;
    for (std::int32_t i = t.ndim(); i-- > 0;) {
        const auto axis = static_cast<std::size_t>(i);
        if (t.stride(axis) != step) return true;
        step *= t.shape(axis);
    }
    return !t.is_aligned_to(2 * static_cast<std::size_t>(t.itemsize()));
}

struct guard_verdict {
    rung_result result;  ///< taken or raised
    bool asked_python;  ///< foreign code ran (and may have let other threads in)
    bool needs_grad;
};

[[nodiscard]] inline guard_verdict check_guards(PyObject* obj, const type_plan& plan, const tensor_ref& t,
                                                bool writable, bool thorough) noexcept {
    guard_verdict verdict{rung_result::taken, false, false};
    const bool ask_conjugate = t.dtype().is_complex();
    const bool ask_negative = thorough || ask_conjugate || may_be_negative(t);
    const bool ask_grad = writable || thorough;
    if (!ask_conjugate && !ask_negative && !ask_grad) [[likely]]
        return verdict;

    const interpreter* const names = interpreter::current();
    if (names == nullptr) return {rung_result::raised, true, false};
    verdict.asked_python = true;
    // Raised here and now: no later rung may have a try, PyTorch's own __dlpack__ lets negative views pass.
    const auto forbid = [&](const error& e) {
        raise(e, "tenon: cannot take this tensor: ");
        verdict.result = rung_result::raised;
    };
    const auto yes = [&](const object_flag& flag, PyObject* name, bool wanted) {
        if (!wanted || verdict.result != rung_result::taken) return false;
        const int answer = flag.ask(obj, name);
        if (answer < 0) verdict.result = rung_result::raised;
        return answer > 0;
    };
    if (yes(plan.conjugate, names->is_conj, ask_conjugate)) {
        forbid(refused("data", "a conjugate view: its memory holds other numbers than it shows")
                   .with_advice("call .resolve_conj() first"));
    }
    if (yes(plan.negative, names->is_neg, ask_negative)) {
        forbid(refused("data", "a negative view: its memory holds other numbers than it shows")
                   .with_advice("call .resolve_neg() first"));
    }
    if (yes(plan.requires_grad, names->requires_grad, ask_grad)) {
        verdict.needs_grad = true;
        if (writable) {
            forbid(refused("data", "it requires grad, so it may not be written to from outside")
                       .with_advice("pass .detach(), or take it for reading only"));
        }
    }
    return verdict;
}

}  // namespace detail

/// Borrowing import: nothing is kept, nothing is allocated. The caller has seen that `plan.table` is there.
[[nodiscard]] inline rung_result borrow(PyObject* obj, const type_plan& plan, bool writable, import_policy policy,
                                        acquired& out, error& why) noexcept {
    // The borrowed struct has no flags: whoever wants to write must see them, unless the library never sets one.
    const bool owning = plan.table->dltensor_from_py_object_no_sync == nullptr || (writable && !plan.honest_borrow);
    interpreter* const home = owning ? interpreter::current() : nullptr;
    if (owning && home == nullptr) return rung_result::raised;
    for (int round = 0;; ++round) {
        const rung_result got = owning ? detail::own_once(obj, plan, home, out, policy, why)
                                       : detail::borrow_once(obj, plan, out, policy, why);
        if (got != rung_result::taken || !plan.guarded || round > 0) return got;
        const auto verdict = detail::check_guards(obj, plan, out, writable, false);
        if (verdict.result != rung_result::taken) [[unlikely]] {
            out.owner.reset();
            return verdict.result;
        }
        // A borrowed struct is good only until other code has run: then it is asked for again.
        if (owning || !verdict.asked_python) return got;
    }
}

/// Owning import. A tensor that requires grad comes out read-only.
[[nodiscard]] inline rung_result own(PyObject* obj, const type_plan& plan, bool writable, import_policy policy,
                                     acquired& out, error& why) noexcept {
    interpreter* const home = interpreter::current();
    if (home == nullptr) return rung_result::raised;
    const rung_result got = detail::own_once(obj, plan, home, out, policy, why);
    if (got != rung_result::taken || !plan.guarded) return got;
    const auto verdict = detail::check_guards(obj, plan, out, writable, true);
    if (verdict.result != rung_result::taken) {
        out.owner.reset();
        return verdict.result;
    }
    if (verdict.needs_grad) out.mark_read_only();
    return got;
}

}  // namespace tenon::py::exchange
