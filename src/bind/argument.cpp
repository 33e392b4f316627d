// src/bind/argument.cpp: arguments are loaded, settled, and looked at a second time.
#include <algorithm>
#include <cstdint>
#include <utility>

#include <tenon/bind/argument.hpp>
#include <tenon/py/like.hpp>
#include "held.hpp"
#include "loader.hpp"
#include "record.hpp"
#include "second_look.hpp"

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
    const loading answer = type.kind == parameter_kind::array ? room.load_array(obj, may_convert, why)
                                                              : room.load_tensor(obj, why);
    if (!why) [[likely]]
        return answer;
    return conclude(answer, obj, type, std::move(why));
}

TENON_INLINE bool argument::settle() noexcept { return loader{*this}.settle(); }

TENON_INLINE void argument::clear() noexcept { loader{*this}.clear(); }

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

/// Keeps one alternative; `source` is the object whose library the memory belongs to.
[[nodiscard]] inline loading keep_one(PyObject* obj, const parameter_spec& spec, bool converting,
                                      std::optional<tensor>& owned, py::ref& source, note_ptr& why) noexcept
    try {
    const bool writable = spec.wanted.writable;
    const loading seen = look_at_capsule(obj, spec, why);
    if (seen != loading::done) return seen;
    bool no_array = true;
    source = py::ref::borrow(obj);
    owned = import_to_keep(obj, writable, no_array);
    if (!owned) return refuse_import(obj, spec, no_array, why);
    const auto met = check(*owned, spec.wanted);
    if (met) return loading::done;
    (void)refuse_unmet(obj, spec, *owned, met.error(), why);
    if (!converting || !is_convertible(*owned, spec)) return loading::refused;
    source = convert_argument(obj, *owned, spec.wanted);
    if (!source) return refuse_or_raise();
    owned = py::from_python(source.get());
    if (!owned) return refuse_or_raise();
    if (!check(*owned, spec.wanted)) return loading::refused;
    return report_conversion(obj, source.get(), spec.target) ? loading::done : loading::raised;
} catch (...) {
    py::raise_caught();
    return loading::raised;
}

TENON_INLINE loading load_kept(PyObject* obj, const parameter_type& type, bool may_convert,
                               found& out) noexcept try {
    out = {};
    if (type.accepts_none && obj == Py_None) return loading::done;
    std::optional<tensor> owned;
    py::ref source;
    // A refusal is noted for a call that will look at it: else the item would be kept for nobody.
    const bool is_noted = is_call_noted();
    note_ptr first;
    loading answer = loading::refused;
    for (const bool converting : {false, true}) {
        if (type.count == 1 ? converting != may_convert : converting && !may_convert) continue;
        for (unsigned i = 0; i < type.count && answer == loading::refused; ++i) {
            note_ptr why;
            out.index = i;
            answer = keep_one(obj, *type.specs[i], converting, owned, source, why);
            if (!first) first = std::move(why);
        }
    }
    if (is_noted && first) answer = conclude(answer, obj, type, std::move(first));
    if (answer != loading::done) return answer;
    py::interpreter* const here = py::interpreter::current();
    if (here == nullptr) return loading::raised;
    out = keep_memory(std::move(*owned), py::detail::keep_object(source.get(), here), out.index);
    return loading::done;
} catch (...) {
    py::raise_caught();
    return loading::raised;
}

TENON_INLINE tensor take_tensor(holder memory) noexcept { return std::move(memory.get()->memory); }

}  // namespace tenon::bind
