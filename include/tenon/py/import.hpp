// tenon/py/import.hpp: the import ladder: any Python object becomes a checked tensor, owned or for the length of a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <tenon/core/copy.hpp>
#include <tenon/core/request.hpp>
#include <tenon/core/tensor.hpp>
#include <tenon/py/acquired.hpp>
#include <tenon/py/frameworks.hpp>
#include <tenon/py/import/array_interface.hpp>
#include <tenon/py/import/buffer.hpp>
#include <tenon/py/import/capsule.hpp>
#include <tenon/py/import/cuda_array_interface.hpp>
#include <tenon/py/import/dlpack.hpp>
#include <tenon/py/import/exchange_api.hpp>
#include <tenon/py/import/numpy.hpp>
#include <tenon/py/interpreter.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/py/type_plan.hpp>

namespace tenon::py {

namespace detail {

enum class rung : unsigned char {
    exchange_table,
    numpy_struct,
    dlpack_method,
    cuda_interface,
    buffer_protocol,
    array_interface,
    capsule,
    count,
};

struct rung_text {
    const char* name;
    const char* absent;
};
inline constexpr rung_text rung_texts[] = {
    {"C exchange table", "the type has no __dlpack_c_exchange_api__"},
    {"NumPy struct", "not a numpy.ndarray of a plain dtype"},
    {"__dlpack__", "no such method"},
    {"__cuda_array_interface__", "no such attribute"},
    {"buffer protocol", "the type does not support it"},
    {"__array_interface__", "no such attribute"},
    {"DLPack capsule", "not a capsule"},
};
static_assert(std::size(rung_texts) == static_cast<std::size_t>(rung::count));

/// What each rung answered, for the one exception that tells them all.
class refusals {
public:
    refusals() noexcept {}  // NOLINT(modernize-use-equals-default): the entries are written before they are read

    void note(rung r, rung_result answer, const error& why) noexcept {
        entries_[used_++] = {r, answer == rung_result::refused, why};
    }

    /// Raises: TypeError when no protocol was there at all, else as the first refusal says.
    void raise_for(PyObject* obj) const noexcept try {
        errc code = errc::not_an_array;
        std::string list;
        for (std::size_t i = 0; i < used_; ++i) {
            const entry& e = entries_[i];
            const rung_text& text = rung_texts[static_cast<std::size_t>(e.which)];
            if (e.refused && code == errc::not_an_array) code = e.why.code;
            list += std::string("\n  ") + text.name + ": " + (e.refused ? e.why.message() : text.absent);
        }
        const std::string who = std::string("tenon: cannot take a tensor from ") + type_name(obj);
        if (code == errc::not_an_array)
            raise(code, who + ": it speaks no tensor protocol; pass an array, a DLPack capsule or a buffer. Tried:" + list);
        else
            raise(code, who + ". Tried:" + list);
    } catch (...) {
        PyErr_NoMemory();
    }

    static std::string type_name(PyObject* obj) { return std::string("'") + Py_TYPE(obj)->tp_name + "' object"; }

private:
    struct entry {
        rung which;
        bool refused;
        error why;
    };
    entry entries_[static_cast<std::size_t>(rung::count) + 1];  // one rung may be tried twice: speculatively first
    std::size_t used_ = 0;
};

/// Looks at a type once, every protocol of it. Null with an exception set on failure.
[[nodiscard]] inline bool make_plan(PyTypeObject* type, interpreter& here, type_plan& plan) noexcept {
    plan = type_plan{};
    plan.type = type;
    exchange::probe(type, here, plan);
    numpy::probe(type, here, plan);
    dlpack::probe(type, here, plan);
    cuda_array_interface::probe(type, here, plan);
    array_interface::probe(type, here, plan);
    buffer::probe(type, plan);
    if (const framework_habits* habits = habits_of(type)) {
        plan.immutable = habits->immutable;
        plan.prefer_buffer = habits->buffer_first && plan.has_buffer;
        plan.honest_borrow = habits->honest_borrow;
    }
    if (PyErr_Occurred() != nullptr) return false;
    remember_plan(plan);
    return true;
}

/// Drops the habit of asking for a buffer first: this type's objects have begun to refuse.
inline void forget_buffer_preference(PyTypeObject* type) noexcept {
    if (type_plan* plan = find_plan(type)) plan->prefer_buffer = false;
}

/// The ladder. Leaves the tensor in `out`, or an exception set. `table_refused` is what the exchange table has
/// been refused for already; it is not asked a second time.
[[nodiscard]] inline bool climb(PyObject* obj, const import_options& options, bool writable, acquired& out,
                                const error* table_refused = nullptr) noexcept {
    interpreter* const here = interpreter::current();
    if (here == nullptr) return false;
    if (PyType_Check(obj) != 0) {
        PyErr_Format(PyExc_TypeError, "tenon: cannot take a tensor from the class '%s'; pass an instance of it",
                     reinterpret_cast<PyTypeObject*>(obj)->tp_name);
        return false;
    }
    type_plan plan;
    if (const type_plan* known = find_plan(Py_TYPE(obj)))
        plan = *known;
    else if (!make_plan(Py_TYPE(obj), *here, plan))
        return false;

    refusals told;
    error why;
    const import_policy policy = options.policy();
    const auto settle = [&](rung r, rung_result answer) {
        if (answer == rung_result::absent || answer == rung_result::refused) told.note(r, answer, why);
        return answer == rung_result::taken || answer == rung_result::raised;
    };
    // The rungs that cannot move or copy are for imports that ask for neither, or for a device already right.
    const bool here_is_fine = !options.to || options.to->is_cpu();
    rung_result answer = rung_result::absent;
    const auto finished = [&] { return answer == rung_result::taken; };

    if (PyCapsule_CheckExact(obj)) {
        answer = bare_capsule::take(obj, options, *here, out, why);
        if (settle(rung::capsule, answer)) return finished();
        told.raise_for(obj);
        return false;
    }
    if (plan.table_fault != nullptr) {
        why = refused("exchange table", plan.table_fault);
        told.note(rung::exchange_table, rung_result::refused, why);
    } else {
        if (table_refused != nullptr) {
            why = *table_refused;
            answer = rung_result::refused;
        } else if (plan.table != nullptr && options.is_plain()) {
            answer = out.owning ? exchange::own(obj, plan, writable, policy, out, why)
                                : exchange::borrow(obj, plan, writable, policy, out, why);
        }
        if (settle(rung::exchange_table, answer)) return finished();
    }
    answer = rung_result::absent;
    if (plan.numpy_struct && here_is_fine) {
        answer = numpy::take(obj, policy, out, why);
        if (answer == rung_result::taken && out.owning) out.owner = keep_object(obj, here);
    }
    if (settle(rung::numpy_struct, answer)) return finished();

    if (plan.prefer_buffer && here_is_fine) {
        // Speculative: what the buffer protocol cannot say (an accelerator, bfloat16) `__dlpack__` may.
        answer = buffer::take(obj, plan.immutable, policy, *here, out, why);
        if (answer == rung_result::raised && PyErr_ExceptionMatches(PyExc_Exception) != 0) {
            PyErr_Clear();
            forget_buffer_preference(Py_TYPE(obj));
            answer = rung_result::refused;
            why = refused("buffer", "the object refused to give one");
        }
        if (settle(rung::buffer_protocol, answer)) return finished();
    }
    answer = dlpack::take(obj, plan, options, *here, out, why);
    if (settle(rung::dlpack_method, answer)) return finished();
    answer = cuda_array_interface::take(obj, plan, options, *here, out, why);
    if (settle(rung::cuda_interface, answer)) return finished();
    if (here_is_fine) {
        if (!plan.prefer_buffer) {
            answer = plan.has_buffer ? buffer::take(obj, plan.immutable, policy, *here, out, why) : rung_result::absent;
            if (settle(rung::buffer_protocol, answer)) return finished();
        }
        answer = array_interface::take(obj, plan, policy, *here, out, why);
        if (settle(rung::array_interface, answer)) return finished();
    }
    told.raise_for(obj);
    return false;
}

/// The fast way in for types seen before: no attribute lookup, no Python call, no allocation.
[[nodiscard]] inline bool borrow_into(PyObject* obj, bool writable, acquired& out) noexcept {
    error why;
    if (const type_plan* plan = find_plan(Py_TYPE(obj))) [[likely]] {
        if (plan->numpy_struct) {
            if (numpy::take(obj, {}, out, why) == rung_result::taken) [[likely]]
                return true;
        } else if (plan->table != nullptr) {
            const rung_result answer = exchange::borrow(obj, *plan, writable, {}, out, why);
            if (answer == rung_result::taken) [[likely]]
                return true;
            return answer == rung_result::refused && climb(obj, {}, writable, out, &why);
        }
    }
    return climb(obj, {}, writable, out);
}

inline void raise_unmet(const error& e, PyObject* obj) noexcept try {
    raise(e, "tenon: " + refusals::type_name(obj) + ": ");
} catch (...) {
    PyErr_NoMemory();
}

}  // namespace detail

/// Imports any object that speaks a tensor protocol, or a DLPack capsule, and keeps its memory alive. Null with
/// a Python exception set on failure: the producer's own, unchanged, or one that lists what was tried. Needs an
/// attached thread state; the tensor may be dropped on any thread, with or without one.
[[nodiscard]] inline std::optional<tensor> from_python(PyObject* obj, const import_options& options = {}) noexcept {
    acquired got;
    got.owning = true;
    if (!detail::climb(obj, options, options.writable, got)) return std::nullopt;
    if (options.copy == true && !got.is_copied()) {
        auto copied = copy_to_host(got);
        if (copied) return std::move(*copied);
        detail::raise_unmet(copied.error(), obj);
        return std::nullopt;
    }
    if (options.writable) {
        if (auto met = check(got, {.writable = true}); !met) {
            detail::raise_unmet(met.error(), obj);
            return std::nullopt;
        }
    }
    auto kept = tensor::keep(got, got.owner);
    if (kept) return std::move(*kept);
    raise(kept.error());
    return std::nullopt;
}

/// Imports for the length of one call: `fn(const tensor_ref&)` runs if the object is a tensor that meets
/// `wanted`. Neither the reference nor anything it points to may be kept.
///
/// `fn` returns a pointer (null then means that an exception is set, as for any C function of Python) and so does
/// this; or nothing, and this returns whether it ran. For a PyTorch tensor or a NumPy array whose type has been
/// seen before there is no allocation and no Python call.
template <class Fn>
auto borrow(PyObject* obj, const request& wanted, Fn&& fn) {
    using R = std::invoke_result_t<Fn&, const tensor_ref&>;
    static_assert(std::is_pointer_v<R> || std::is_void_v<R>, "py::borrow: the function must return a pointer or nothing");
    using answer = std::conditional_t<std::is_void_v<R>, bool, R>;
    acquired got;
    if (!detail::borrow_into(obj, wanted.writable, got)) [[unlikely]]
        return answer{};
    if (auto met = check(got, wanted); !met) [[unlikely]] {
        detail::raise_unmet(met.error(), obj);
        return answer{};
    }
    if constexpr (std::is_void_v<R>) {
        fn(static_cast<const tensor_ref&>(got));
        return true;
    } else {
        return fn(static_cast<const tensor_ref&>(got));
    }
}

}  // namespace tenon::py
