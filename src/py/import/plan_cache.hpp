// src/py/import/plan_cache.hpp: plans of types, remembered until the type changes: a few by each thread,
// which finds them without a lock, and all by the process, so that no thread makes again what another has
// made.
//
// An entry is keyed by the type's address and its version tag. CPython gives a type a new tag whenever the
// type or a base of it is modified, and never gives a tag twice, so an entry cannot outlive what it
// describes: not when the type dies and another takes its address, not when a protocol attribute is added
// later. Tags are unique per interpreter, so entries of heap types also name the interpreter. Entries hold no
// references.
#pragma once

#include "attempt.hpp"

namespace tenon::py {

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
    if (plan.any_interpreter) return true;
    const PyThreadState* const here = current_thread_state();
    return here != nullptr && plan.interpreter == here->interp &&
           plan.departures == interpreter::departures();
}

/// Python 3.10 can be told to begin its tags anew (`sys._clear_type_cache`), and a tag may then mean another
/// state of the type, or another type. There, what the main protocols were is compared as well: a lookup,
/// which may run code (the keys of a class may compare as they like).
inline constexpr bool finding_runs_code = PY_VERSION_HEX < 0x030B0000;

inline bool is_same_type(PyTypeObject* type, const type_plan& plan) noexcept {
#if PY_VERSION_HEX < 0x030B0000
    if (current_thread_state() == nullptr) return false;
    const interpreter* const names = interpreter::current_attached();
    if (names == nullptr) return (PyErr_Clear(), false);
    // The type is held, and the plan may be another's afterwards, be it by what is let go of at the end.
    const unsigned tag = plan.tag;
    bool same = false;
    {
        const ref held = ref::borrow(reinterpret_cast<PyObject*>(type));
        const ref dlpack = ref::take(call::type_attr(type, names->dlpack));
        const ref table = ref::take(call::type_attr(type, names->exchange_api));
        same = tag == version_tag(type) && dlpack.get() == plan.seen_dlpack && table.get() == plan.seen_table;
    }
    return same && plan.type == type && plan.tag == tag;
#else
    (void)type, (void)plan;
    return true;
#endif
}

/// Where the thread keeps a plan of the type: the place it has, else an empty one, else one that another has.
inline type_plan& place_for(PyTypeObject* type) noexcept {
    thread_plans& mine = plans;
    const std::size_t home = home_of(type);
    for (std::size_t way = 0; way < plan_ways; ++way)
        if (mine.at[home ^ way].type == type) return mine.at[home ^ way];
    for (std::size_t way = 0; way < plan_ways; ++way)
        if (mine.at[home ^ way].type == nullptr) return mine.at[home ^ way];
    return mine.at[home ^ (mine.turn++ % plan_ways)];
}

/// The plans of all threads. No code of others runs while they are held.
class shared_plans {
public:
    /// Copies what is known of the type in this interpreter; false if nothing is that still holds.
    [[nodiscard]] static bool find(PyTypeObject* type, type_plan& out) noexcept {
        const PyThreadState* const here = current_thread_state();
        bool found = false;
        if (here == nullptr) return found;
        hold([&](table& known) {
            const auto entry = known.find(type);
            found = entry != known.end() && is_plan_of(entry->second, type) &&
                    entry->second.interpreter == here->interp &&
                    entry->second.departures == interpreter::departures();
            if (found) out = entry->second;
        });
        return found;
    }
    static void note(const type_plan& plan) noexcept {
        hold([&](table& known) {
            try {
                // Of types that are gone nobody tells us: now and then it begins anew.
                if (known.size() >= limit) known.clear();
                type_plan& kept = known.insert_or_assign(plan.type, plan).first->second;
                // Whether its objects give a buffer each thread finds out for itself: they differ.
                if (kept.buffer_first && !kept.route.on_cuda) kept.route.prefer_buffer = true;
            } catch (const std::bad_alloc&) {
                return;  // then every thread makes its own
            }
        });
    }

private:
    using table = std::unordered_map<const PyTypeObject*, type_plan>;
    static constexpr std::size_t limit = 512;

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
    thread_plans& mine = plans;
    const std::size_t home = home_of(type);
    for (std::size_t way = 1; way < plan_ways; ++way)
        if (is_plan_of(mine.at[home ^ way], type)) return &mine.at[home ^ way];
    if (version_tag(type) == 0) return nullptr;
    type_plan made_elsewhere;
    if (!shared_plans::find(type, made_elsewhere)) return nullptr;
    type_plan& place = place_for(type);
    place = made_elsewhere;
    return &place;
}
}  // namespace detail

/// The remembered plan of a type, or null when there is none that still holds, as far as can be told without
/// running code of others.
TENON_HOT [[nodiscard]] inline type_plan* known_plan(PyTypeObject* type) noexcept {
    type_plan* plan = &detail::plans.at[detail::home_of(type)];
#if defined(__GNUC__)
    // An ordinary pointer from here on: the thread's block is looked up once, not at each use.
    asm("" : "+r"(plan));
#endif
    if (!detail::is_plan_of(*plan, type)) [[unlikely]]
        plan = detail::look_further(type);
    return plan;
}

/// The remembered plan of a type, or null when there is none that still holds. Good until the next look for
/// another on this thread: copy what is needed before running foreign code.
TENON_HOT [[nodiscard]] inline type_plan* find_plan(PyTypeObject* type) noexcept {
    type_plan* const plan = known_plan(type);
    return plan != nullptr && detail::is_same_type(type, *plan) ? plan : nullptr;
}

/// The same of an object's class, which may be another one by the time its plan is found.
TENON_HOT [[nodiscard]] inline type_plan* find_plan_of(PyObject* obj) noexcept {
    type_plan* const plan = find_plan(Py_TYPE(obj));
    if constexpr (detail::finding_runs_code)
        return plan != nullptr && plan->type == Py_TYPE(obj) ? plan : nullptr;
    else
        return plan;
}

/// Dates a plan before its type is looked at, so that a change in the middle leaves it out of date. The
/// caller holds the type.
inline void date_plan(type_plan& plan, const interpreter& names) noexcept {
    const ref dlpack = ref::take(call::type_attr(plan.type, names.dlpack));  // gives the type its tag, too
    const ref table = ref::take(call::type_attr(plan.type, names.exchange_api));
    plan.seen_dlpack = dlpack.get();
    plan.seen_table = table.get();
    plan.tag = version_tag(plan.type);
    plan.any_interpreter = (plan.type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0;
    plan.interpreter = PyInterpreterState_Get();
    plan.departures = interpreter::departures();
}

/// Remembers a plan, if its type has a tag to be known by.
inline void remember_plan(const type_plan& plan) noexcept {
    if (plan.tag == 0) return;
    detail::place_for(plan.type) = plan;
    detail::shared_plans::note(plan);
}

/// Changes what has been learned of a type, if the plan the import was begun by is still there (an object may
/// change its class meanwhile); for the other threads, too.
template <class Change>
void learn(const attempt& a, Change&& change) noexcept {
    type_plan* const plan = find_plan_of(a.obj);
    if (plan == nullptr || plan->type != a.plan.type || plan->tag != a.plan.tag) return;
    change(plan->route);
    remember_plan(*plan);
}

}  // namespace tenon::py
