// src/bind/argument.cpp: arguments are loaded, settled, and looked at a second time.
#include <tenon/bind/argument.hpp>
#include "../py/export/all.hpp"
#include "loader.hpp"

namespace tenon::bind {

TENON_INLINE loading refuse_or_raise() noexcept {
    if (py::is_no_answer_pending()) return loading::raised;
    PyErr_Clear();
    return loading::refused;
}

/// Notes why the object was refused; what was refused as it was, and is taken converted, no longer is.
TENON_COLD inline loading conclude(loading answer, PyObject* obj, const parameter_type& type,
                                   note_ptr why) noexcept {
    if (answer == loading::refused)
        add_note(std::move(why), type);
    else if (answer == loading::done)
        why = take_note(notes_here().first, type, obj);
    return answer;
}

TENON_INLINE loading argument::load(PyObject* obj, const parameter_type& type, bool may_convert) noexcept {
    const loader room{*this};
    type_ = &type;
    if (type.accepts_none && obj == Py_None) return loading::done;
    note_ptr why;
    const loading answer = room.load(obj, may_convert, why);
    if (!why) [[likely]]
        return answer;
    return conclude(answer, obj, type, std::move(why));
}

TENON_INLINE bool argument::settle() noexcept { return loader{*this}.settle(); }

/// What is released may run code of others, which finds nothing in the room.
TENON_INLINE void argument::clear() noexcept {
    const content was = std::exchange(content_, content::nothing);
    keeps_ = waits_ = false;
    if (was == content::array)
        loader{*this}.room().~array_room();
    else if (was == content::tensor)
        kept_->~tensor();
}

/// Makes sure of everything that is borrowed. Ends: what is held stays so, and while nothing has to be held
/// no code of others runs.
TENON_COLD [[nodiscard]] inline bool make_sure(argument* const* arguments, unsigned count) noexcept {
    for (;;) {
        for (unsigned i = 0; i < count; ++i)
            if (arguments[i] != nullptr && !loader{*arguments[i]}.hold()) return false;
        sight worst = sight::same;
        for (unsigned i = 0; i < count && worst != sight::changed; ++i)
            if (arguments[i] != nullptr) worst = std::max(worst, loader{*arguments[i]}.look());
        if (worst != sight::unclear) return worst == sight::same;
    }
}

TENON_INLINE bool settle_all(argument* const* arguments, unsigned count, std::uint64_t ran_code) noexcept {
    bool has_borrowed = false, is_stale = false;
    for (unsigned i = 0; i < count; ++i) {
        if (arguments[i] == nullptr) {
            const bool ran = (ran_code >> (i < 63 ? i : 63U) & 1U) != 0;
            is_stale = is_stale || (has_borrowed && ran);
            continue;
        }
        const loader room{*arguments[i]};
        is_stale = is_stale || arguments[i]->waits() || (has_borrowed && room.ran_code());
        has_borrowed = has_borrowed || room.is_borrowed();
    }
    if (!is_stale) [[likely]]
        return true;
    for (unsigned i = 0; i < count; ++i)
        if (arguments[i] != nullptr && !arguments[i]->settle()) return false;
    return make_sure(arguments, count);
}

TENON_INLINE loading load_kept(PyObject* obj, const parameter_type& type, bool may_convert,
                               found& out) noexcept try {
    const py::ref held_object = py::ref::borrow(obj);  // its container may let go of it while it is asked
    argument a;
    const loader room{a};
    a.type_ = &type;
    a.owning_ = true;
    out = {};
    if (type.accepts_none && obj == Py_None) return loading::done;
    note_ptr why;
    loading answer = room.load(obj, may_convert, why);
    if (answer == loading::done && !room.settle()) answer = refuse_import(obj, room.spec(), false, why);
    // A refusal is noted for a call that will look at it: else the item would be kept for nobody.
    if (why && is_call_noted()) answer = conclude(answer, obj, type, std::move(why));
    if (answer != loading::done) return answer;
    py::interpreter* const here = py::interpreter::current();
    std::optional<tensor> kept = here != nullptr ? room.take() : std::nullopt;
    if (!kept) return loading::raised;
    out = keep_memory(std::move(*kept), py::detail::keep_object(a.source_, here), a.index_);
    return loading::done;
} catch (...) {
    py::raise_caught();
    return loading::raised;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): it is taken over
TENON_INLINE tensor take_tensor(holder memory) noexcept { return std::move(memory.get()->memory); }

}  // namespace tenon::bind
