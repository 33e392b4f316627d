// src/py/import/type_plan.hpp: what is known of a Python type's protocols, and remembered until the type
// changes: a few plans by each thread, which finds them without a lock, and all by the process, so that no
// thread makes again what another has made.
//
// An entry is keyed by the type's address and its version tag. CPython gives a type a new tag whenever the
// type or a base of it is modified, and never gives a tag twice, so an entry cannot outlive what it
// describes: not when the type dies and another takes its address, not when a protocol attribute is added
// later. Tags are unique per interpreter, so entries of heap types also name the interpreter. Entries hold no
// references.
#pragma once

#include "../library/all.hpp"

namespace tenon::py {

/// What PyTorch's exchange table does not tell: conjugate and negative views show other numbers than their
/// memory holds, and what requires grad must not be written to from outside.
struct tensor_guards {
    object_query conjugate;
    object_query negative;
    object_query requires_grad;
    const torch_library* torch = nullptr;  ///< set for tensors of PyTorch's
    const torch_flags* flags = nullptr;    ///< says the same without running anything, where it is known
    bool asked = false;                    ///< the attributes must be asked; `flags` alone does not do

    [[nodiscard]] static tensor_guards find(PyTypeObject* type, const interpreter& names,
                                            const torch_library* torch) noexcept {
        const ref held = ref::borrow(reinterpret_cast<PyObject*>(type));
        tensor_guards found{object_query::find(type, names.is_conj), object_query::find(type, names.is_neg),
                            object_query::find(type, names.requires_grad)};
        if (torch != nullptr && torch->has(type)) found.torch = torch;
        if (found.torch != nullptr) found.flags = torch->flags();
        const bool told =
            found.flags != nullptr && torch->asks_by(found.conjugate, found.negative, found.requires_grad);
        found.asked =
            !told && (found.conjugate.exists() || found.negative.exists() || found.requires_grad.exists());
        return found;
    }
};

/// Where an attribute can be found.
enum class attribute_place : unsigned char {
    nowhere,   ///< neither the type nor an instance can have it
    method,    ///< a plain method of the type
    anywhere,  ///< a property, an instance attribute, `__getattr__`: must be asked for
};

/// The caller holds the type.
[[nodiscard]] inline attribute_place place_of(PyTypeObject* type, PyObject* name) noexcept {
    const ref found = ref::take(call::type_attr(type, name));
    if (found) {
        const bool plain = (Py_TYPE(found.get())->tp_flags & Py_TPFLAGS_METHOD_DESCRIPTOR) != 0 &&
                           type->tp_getattro == PyObject_GenericGetAttr;
        return plain ? attribute_place::method : attribute_place::anywhere;
    }
#if PY_VERSION_HEX >= 0x030B0000
    const bool has_dict = type->tp_dictoffset != 0 || (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) != 0;
#else
    const bool has_dict = type->tp_dictoffset != 0;
#endif
    const bool generic = type->tp_getattro == PyObject_GenericGetAttr;
    return generic && !has_dict ? attribute_place::nowhere : attribute_place::anywhere;
}

/// What an object has under the name: nothing where there is none, or None. False with an exception set.
[[nodiscard]] inline bool read_attribute(PyObject* obj, PyObject* name, ref& out) noexcept {
    PyObject* found = nullptr;
    if (call::optional_attr(obj, name, &found) < 0) return false;
    out = ref::take(found);
    if (out.get() == Py_None) out = ref();
    return true;
}

/// Calls a method that may be a plain one, a property, an instance attribute or nothing. `args[0]` is the
/// object, and the slot before it is free for the callee. `found` tells absence (also a method set to None)
/// from a call that failed.
[[nodiscard]] inline ref call_protocol_method(attribute_place place, PyObject* name, PyObject* const* args,
                                              PyObject* keywords, bool& found) noexcept {
    found = place != attribute_place::nowhere;
    if (!found) return {};
    if (place == attribute_place::method) return ref::take(call::keyword_method(name, args, keywords));
    ref bound;
    if (!read_attribute(args[0], name, bound)) return {};
    found = static_cast<bool>(bound);
    return found ? ref::take(call::keyword_call(bound.get(), args + 1, keywords)) : ref();
}
/// The same without keywords.
[[nodiscard]] inline ref call_protocol_method(attribute_place place, PyObject* name, PyObject* obj,
                                              bool& found) noexcept {
    PyObject* args[2] = {nullptr, obj};
    return call_protocol_method(place, name, args + 1, nullptr, found);
}

/// How `__dlpack__` of a type wants to be called.
enum class dlpack_dialect : unsigned char {
    unknown,  ///< not called yet: try `max_version`, step back once on TypeError
    modern,   ///< takes `max_version`
    ancient,  ///< takes `stream` alone
};

/// How an array of the type's own library is made from a tensor.
enum class maker_kind : unsigned char {
    unresolved,      ///< not looked for yet
    none,            ///< the type belongs to no library that makes arrays
    exchange_table,  ///< the type's own table does
    numpy,           ///< NumPy's C functions do
    function,        ///< a function that takes a producer object
    of_capsule,      ///< a function that takes a legacy capsule
    type_method,     ///< `from_dlpack` of the type itself
};

/// What has been learned of a type's objects by importing them: the one part of a plan that changes.
struct route {
    dlpack_dialect dialect = dlpack_dialect::unknown;
    bool prefer_buffer = false;  ///< ask for a buffer before `__dlpack__`; dropped when a buffer is refused
    bool on_cuda = false;        ///< the last object that was asked plainly was on CUDA, or all of them are
};

/// How arrays like the type's objects are made, found when the first one is.
struct maker_plan {
    maker_kind kind = maker_kind::unresolved;
    interpreter* home = nullptr;  ///< the record that keeps the two functions
    PyObject* from = nullptr;     ///< borrowed: what makes an array of a producer or a capsule
    PyObject* empty = nullptr;    ///< borrowed: what makes an empty one; null when there is none
};

/// What a type speaks, seen once; then the route.
struct type_plan {
    PyTypeObject* type = nullptr;
    const library_row* library = nullptr;  ///< that it comes from, if that is known
    unsigned tag = 0;
    unsigned departures = 0;  ///< with the address below, the interpreter
    PyInterpreterState* interpreter = nullptr;
    bool numpy_struct = false;  ///< NumPy's struct, of the layout we know
    bool has_buffer = false;
    bool masked = false;            ///< a numpy.ma array: what the mask hides must not be shown
    bool buffer_first = false;      ///< its route may prefer buffers
    bool genuine_table = false;     ///< the table is PyTorch's own: what it lends is writable
    bool only_fills = false;        ///< and lending runs no code of others: a struct is filled in
    bool immutable = false;         ///< never to be written to
    bool hands_out_legacy = false;  ///< its library gives it to anybody as a legacy struct, read-only or not
    bool arrow_first = false;       ///< Arrow's interface is asked in place of `__dlpack__`
    bool stream_alone = false;      ///< `__dlpack__` is best asked with the stream alone
    attribute_place dlpack = attribute_place::nowhere;
    attribute_place dlpack_device = attribute_place::nowhere;
    attribute_place cuda_array_interface = attribute_place::nowhere;
    attribute_place array_interface = attribute_place::nowhere;
    attribute_place array_typestr = attribute_place::nowhere;
    attribute_place arrow_array = attribute_place::nowhere;
    attribute_place arrow_device_array = attribute_place::nowhere;
    attribute_place arrow_stream = attribute_place::nowhere;
    const abi::exchange_api* table = nullptr;
    const char* table_fault = nullptr;  ///< why a published table cannot be used
    const void* seen_dlpack = nullptr;  ///< what the attributes were; only ever compared
    const void* seen_table = nullptr;
    library_stream stream_of = nullptr;
    tensor_guards guards;

    py::route route;
    maker_plan maker;

    /// Whether the library can compute with elements at an address: it would not notice otherwise.
    [[nodiscard]] bool can_use(const void* address, dtype element, device where) const noexcept {
        return library == nullptr || library->can_compute_at(address, element, where);
    }
    /// Objects of which the buffer protocol alone is known.
    [[nodiscard]] bool speaks_buffer_alone() const noexcept {
        return has_buffer && table == nullptr && table_fault == nullptr && !numpy_struct &&
               dlpack == attribute_place::nowhere && cuda_array_interface == attribute_place::nowhere;
    }
    /// Its table lends without running code of others, and what it lends need not be asked about.
    [[nodiscard]] bool lends_plainly() const noexcept {
        return only_fills && !guards.asked && table->dltensor_from_py_object_no_sync != nullptr;
    }
};

// --- remembered -------------------------------------------------------------------------------------------

namespace detail {

/// The thread's own: a type has four places, of which it is looked for in one of its own first.
inline constexpr std::size_t plan_ways = 4;
inline constexpr std::size_t plan_slots = 32;
struct thread_plans {
    type_plan at[plan_slots];
    unsigned turn = 0;  ///< whose place is taken next, where all four are
};
inline thread_local constinit thread_plans plans TENON_PRIVATE{};

inline std::size_t home_of(PyTypeObject* type) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(type);
    return ((address >> 4U) ^ (address >> 9U)) % plan_slots;
}

/// The plan is one of this type, as the type is now.
TENON_HOT inline bool is_plan_of(const type_plan& plan, PyTypeObject* type) noexcept {
    if (plan.type != type || plan.tag == 0 || plan.tag != version_tag(type)) return false;
    const PyThreadState* const here = current_thread_state();
    return here != nullptr && plan.interpreter == here->interp &&
           plan.departures == interpreter::departures();
}

/// Python 3.10 can be told to begin its tags anew (`sys._clear_type_cache`), and a tag may then mean another
/// state of the type, or another type. There, what the main protocols were is compared as well: a lookup,
/// which may run code (the keys of a class may compare as they like).
inline constexpr bool finding_runs_code = PY_VERSION_HEX < 0x030B0000;

/// Whether the plan, which is one of the class that the object had, still is one of the class that it has.
[[nodiscard]] inline bool is_confirmed(PyObject* obj, const type_plan& plan) noexcept {
    if (current_thread_state() == nullptr) return false;
    const interpreter* const names = interpreter::current_attached();
    if (names == nullptr) return (PyErr_Clear(), false);
    // The type is held, and the plan may be another's afterwards, be it by what is let go of at the end.
    PyTypeObject* const type = plan.type;
    const unsigned tag = plan.tag;
    bool same = false;
    {
        const ref held = class_of(obj);
        const ref dlpack = ref::take(call::type_attr(type, names->dlpack));
        const ref table = ref::take(call::type_attr(type, names->exchange_api));
        same = tag == version_tag(type) && dlpack.get() == plan.seen_dlpack && table.get() == plan.seen_table;
    }
    return same && plan.type == type && plan.tag == tag && Py_TYPE(obj) == type;
}

/// The first of the type's places that fits, beginning with its own; null when none does.
template <class Fits>
type_plan* find_place(PyTypeObject* type, Fits&& fits) noexcept {
    const std::size_t home = home_of(type);
    for (std::size_t way = 0; way < plan_ways; ++way)
        if (type_plan& place = plans.at[home ^ way]; fits(place)) return &place;
    return nullptr;
}

/// Where the thread keeps a plan of the type: the place it has, else an empty one, else one that another has.
inline type_plan& place_for(PyTypeObject* type) noexcept {
    for (PyTypeObject* const of : {type, static_cast<PyTypeObject*>(nullptr)})
        if (type_plan* const place = find_place(type, [&](const type_plan& p) { return p.type == of; }))
            return *place;
    return plans.at[home_of(type) ^ (plans.turn++ % plan_ways)];
}

/// The plans of all threads. No code of others runs while they are held.
class shared_plans {
public:
    /// Copies what is known of the type in this interpreter; false if nothing is that still holds.
    [[nodiscard]] static bool find(PyTypeObject* type, type_plan& out) noexcept {
        bool found = false;
        hold([&](table& known) {
            const entry* const kept = *place_of(known, type);
            found = kept != nullptr && is_plan_of(kept->plan, type);
            if (found) out = kept->plan;
        });
        return found;
    }
    static void note(const type_plan& plan) noexcept {
        hold([&](table& known) {
            // Of types that are gone nobody tells us: now and then it begins anew.
            if (known.count >= limit) known.clear();
            entry*& kept = *place_of(known, plan.type);
            if (kept == nullptr) kept = new (std::nothrow) entry;
            if (kept == nullptr) return;  // then every thread makes its own
            known.count += kept->plan.type == nullptr ? 1U : 0U;
            kept->plan = plan;
            // Whether its objects give a buffer each thread finds out for itself: they differ.
            if (plan.buffer_first && !plan.route.on_cuda) kept->plan.route.prefer_buffer = true;
        });
    }

private:
    static constexpr std::size_t limit = 512;
    struct entry {
        type_plan plan;
        entry* next = nullptr;
    };
    struct table {
        entry* lists[plan_slots] = {};
        std::size_t count = 0;

        void clear() noexcept {
            for (entry*& first : lists)
                while (first != nullptr) delete std::exchange(first, first->next);
            count = 0;
        }
    };
    /// Where the entry of a type hangs, or would.
    [[nodiscard]] static entry** place_of(table& known, PyTypeObject* type) noexcept {
        entry** place = &known.lists[home_of(type)];
        while (*place != nullptr && (*place)->plan.type != type) place = &(*place)->next;
        return place;
    }

    /// Not a mutex: a process forked while another interpreter's thread is in here must not wait for ever.
    /// Whoever does not get in after a while goes without.
    template <class Fn>
    static void hold(Fn&& fn) noexcept {
        for (int tries = 0; busy.test_and_set(std::memory_order_acquire); ++tries)
            if (tries == 10000) return;
        if (all == nullptr) all = new (std::nothrow) table;
        if (all != nullptr) fn(*all);
        busy.clear(std::memory_order_release);
    }

    TENON_PRIVATE static inline std::atomic_flag busy{};
    TENON_PRIVATE static inline table* all = nullptr;  // never destroyed: threads may outlive statics
};

/// Looks where a type's plan may be besides its first place. What another thread has made is copied there.
TENON_COLD [[nodiscard]] inline type_plan* look_further(PyTypeObject* type) noexcept {
    if (type_plan* const mine = find_place(type, [&](const type_plan& p) { return is_plan_of(p, type); }))
        return mine;
    type_plan made_elsewhere;
    if (!shared_plans::find(type, made_elsewhere)) return nullptr;
    return &(place_for(type) = made_elsewhere);
}
}  // namespace detail

/// The remembered plan of an object's class, or null when there is none that still holds. Good until the next
/// look for another on this thread: copy what is needed before running foreign code.
TENON_HOT [[nodiscard]] inline type_plan* find_plan_of(PyObject* obj) noexcept {
    type_plan* plan = &detail::plans.at[detail::home_of(Py_TYPE(obj))];
#if defined(__GNUC__)
    // An ordinary pointer from here on: the thread's block is looked up once, not at each use.
    asm("" : "+r"(plan));
#endif
    if (!detail::is_plan_of(*plan, Py_TYPE(obj))) [[unlikely]]
        plan = detail::look_further(Py_TYPE(obj));
    if constexpr (detail::finding_runs_code)
        if (plan != nullptr && !detail::is_confirmed(obj, *plan)) return nullptr;
    return plan;
}

/// Remembers a plan, if its type has a tag to be known by.
inline void remember_plan(const type_plan& plan) noexcept {
    if (plan.tag == 0) return;
    detail::place_for(plan.type) = plan;
    detail::shared_plans::note(plan);
}

}  // namespace tenon::py
