// src/bind/argument.cpp: an object becomes an argument, alone or with the others of its call.
#include <tenon/bind/argument.hpp>
#include "loader.hpp"

namespace tenon::bind {

/// Notes why the object was refused; what was refused as it was, and is taken converted, no longer is.
TENON_COLD inline void conclude(loading answer, PyObject* obj, const parameter_type& type,
                                note_ptr why) noexcept {
    if (answer == loading::refused)
        add_note(std::move(why), type);
    else if (answer == loading::done)
        why = take_note(notes_here().first, type, obj);
}

TENON_INLINE loading load_closely(argument& a, PyObject* obj, const parameter_type& type, bool may_convert,
                                  const bool* first) noexcept {
    note_ptr why;
    const loading answer = loader{a}.load(obj, type, may_convert, why, first);
    if (why) [[unlikely]]
        conclude(answer, obj, type, std::move(why));
    return answer;
}

TENON_INLINE loading argument::load_or_number(PyObject* obj, const parameter_type& type,
                                              bool may_convert) noexcept {
    if (!is_plain_number(obj)) return load(obj, type, may_convert);
    note_ptr why;
    type_ = &type;
    const loading answer = loader{*this}.load_number(obj, may_convert, why);
    if (why) [[unlikely]]
        conclude(answer, obj, type, std::move(why));
    return answer;
}

TENON_INLINE loading load_kept(PyObject* obj, const parameter_type& type, bool may_convert,
                               found& out) noexcept try {
    const py::ref held_object = py::ref::borrow(obj);  // its container may let go of it while it is asked
    argument a;
    const loader room{a, true};
    note_ptr why;
    out = {};
    loading answer = room.load(obj, type, may_convert, why);
    if (answer == loading::done && !room.settle()) answer = room.refuse_import(obj, why);
    // A refusal is noted for a call that will look at it: else the item would be kept for nobody.
    if (why && is_call_noted()) conclude(answer, obj, type, std::move(why));
    if (answer == loading::done && a.lent().ref != nullptr) out = room.give();
    return answer;
} catch (...) {
    py::raise_caught();
    return loading::raised;
}

TENON_INLINE found keep_lent(argument& lender) {
    const loader room{lender};
    if (!room.is_array()) return {lender.lent().ref};  // it holds nothing, and so will its copies
    held& memory = room.shared();
    if (!memory.is_kept && py::attached_thread_state() != nullptr && !room.hand_over(memory))
        throw py::python_error();
    tenon::detail::retain(&memory);
    return {&memory.memory, lender.source(), 0, holder(&memory)};
}

TENON_INLINE bool argument::lend_nothing(PyObject* none, const parameter_type& type) noexcept {
    const request& wanted = type.specs[0]->wanted;
    auto* const room = ::new (static_cast<void*>(&got_)) py::acquired;  // owns nothing: left as it is
    static_cast<tensor_ref&>(*room) = no_elements(wanted.rank, wanted.type.value_or(dtype{}));
    found_ = room;
    type_ = &type;
    given_ = none;
    return true;
}

TENON_INLINE bool argument::settle() noexcept { return loader{*this}.settle(); }

/// What is released may run code of others, which finds nothing in the room.
TENON_INLINE void argument::clear() noexcept {
    if (shared_ != nullptr) loader{*this}.end_sharing();
    const content was = std::exchange(content_, content::nothing);
    const py::ref last =
        py::ref::take(std::exchange(converted_, nullptr));  // what was borrowed from it first
    keeps_ = waits_ = false;
    if (was == content::array)
        got_.~acquired();
    else if (was == content::tensor)
        kept_.~tensor();
}

/// Makes sure of everything that is borrowed. Ends: what is held stays so, and while nothing has to be held
/// no code of others runs.
TENON_COLD [[nodiscard]] inline bool make_sure(std::span<const loaded> arguments) noexcept {
    for (;;) {
        for (const loaded& one : arguments)
            if (one.ours != nullptr && !loader{*one.ours}.hold()) return false;
        sight worst = sight::same;
        for (const loaded& one : arguments)
            if (one.ours != nullptr && worst != sight::changed)
                worst = std::max(worst, loader{*one.ours}.look());
        if (worst != sight::unclear) return worst == sight::same;
    }
}

TENON_INLINE bool settle_all(const loaded* arguments, unsigned count) noexcept {
    const std::span all(arguments, count);
    bool has_borrowed = false, is_stale = false;
    for (const loaded& one : all) {
        if (one.ours == nullptr) {
            is_stale = is_stale || (has_borrowed && one.ran_code);
            continue;
        }
        const loader room{*one.ours};
        is_stale = is_stale || one.ours->waits() || (has_borrowed && room.ran_code());
        has_borrowed = has_borrowed || room.is_borrowed();
    }
    if (!is_stale) [[likely]]
        return true;
    for (const loaded& one : all)
        if (one.ours != nullptr && !one.ours->settle()) return false;
    return make_sure(all);
}

}  // namespace tenon::bind

namespace tenon {

TENON_INLINE conversion_hook set_conversion_hook(conversion_hook hook) noexcept {
    return bind::conversion_reporter.exchange(hook);
}

TENON_INLINE void warn_of_conversion(const conversion& c) {
    if (py::attached_thread_state() == nullptr) return py::detail::raise_detached();
    const std::string text = sentence(
        {"tenon: an argument of type ", bind::type_name(c.from), " was copied to become ", c.expected});
    if (PyErr_Occurred() != nullptr) return;
    foreign_code([&] { return PyErr_WarnEx(PyExc_RuntimeWarning, text.c_str(), 1); });
}

}  // namespace tenon
