// src/bind/record.hpp: what is noted of a call while its arguments are loaded: why each did not fit.
//
// Notes belong to the call that is under way on the thread, if that one looks at them at its end
// (call_frame); else there is room for one, the reason why the only overload of a function does not take its
// arguments. Nothing is put into words before somebody raises.
#pragma once

#include <tenon/bind/call.hpp>
#include <tenon/bind/parameter.hpp>
#include "../py/export/all.hpp"

namespace tenon::bind {

enum class reason : std::uint8_t {
    no_array,  ///< it speaks no protocol
    raised,    ///< its import was refused by an exception, which is kept
    unmet,     ///< it is an array, and not one that is asked for
};

/// One refusal. Dropping it may run code of others.
struct note {
    note* next = nullptr;
    reason kind = reason::no_array;
    const parameter_type* type = nullptr;
    const parameter_spec* spec = nullptr;
    py::ref object;        ///< what was refused: held, since an item of a list may be nobody else's
    py::ref exception;     ///< of `raised`
    error fault{};         ///< of `unmet`, as all the others from here on
    bool relaxed = false;  ///< element type and order would be converted: something else is at fault
    bool read_only = false;
    tenon::dtype dtype{};
    tenon::device device{};
    std::int32_t ndim = 0;
    std::int64_t axes[1];  ///< the shape, then the strides: as many as there are

    [[nodiscard]] extents shape() const noexcept { return {axes, static_cast<std::size_t>(ndim)}; }
    [[nodiscard]] extents strides() const noexcept { return {axes + ndim, static_cast<std::size_t>(ndim)}; }
};
struct drop_note {
    void operator()(note* n) const noexcept {
        n->~note();
        ::operator delete(n);
    }
};
using note_ptr = std::unique_ptr<note, drop_note>;

/// Null when there is no memory for it: then nobody is told.
[[nodiscard]] inline note_ptr note_of(reason kind, PyObject* obj, const parameter_spec& spec,
                                      std::int32_t ndim = 0) noexcept {
    const std::size_t size = sizeof(note) + 2 * static_cast<std::size_t>(ndim) * sizeof(std::int64_t);
    void* const memory = ::operator new(size, std::nothrow);
    if (memory == nullptr) return nullptr;
    note_ptr made(new (memory) note);
    made->kind = kind;
    made->spec = &spec;
    made->object = py::ref::borrow(obj);
    made->ndim = ndim;
    return made;
}
/// That `got`, which is what `obj` is, does not meet the spec.
[[nodiscard]] inline note_ptr note_unmet(PyObject* obj, const parameter_spec& spec, const tensor_ref& got,
                                         const error& fault) noexcept {
    note_ptr made = note_of(reason::unmet, obj, spec, got.ndim());
    if (!made) return made;
    made->fault = fault;
    made->read_only = got.is_read_only();
    made->dtype = got.dtype();
    made->device = got.device();
    for (std::int32_t i = 0; i < got.ndim(); ++i) {
        made->axes[i] = got.shape(static_cast<std::size_t>(i));
        made->axes[got.ndim() + i] = got.stride(static_cast<std::size_t>(i));
    }
    return made;
}

/// The notes of the call under way on this thread.
[[nodiscard]] TENON_PRIVATE inline call_notes& notes_here() noexcept {
    static thread_local constinit call_notes here;
    return here;
}

/// Takes out of a list what was noted of an object for a parameter.
[[nodiscard]] inline note_ptr take_note(note*& first, const parameter_type& type, PyObject* obj) noexcept {
    for (note** at = &first; *at != nullptr; at = &(*at)->next) {
        if ((*at)->type != &type || (*at)->object.get() != obj) continue;
        note_ptr taken(*at);
        *at = std::exchange(taken->next, nullptr);
        return taken;
    }
    return nullptr;
}

/// Drops all the notes of a list, which may run code of others: nobody finds them any more.
inline void drop_notes(note* first) noexcept {
    while (first != nullptr) {
        const note_ptr dropped(first);
        first = first->next;
    }
}

/// Notes it in the place of what was noted of the same object for the same parameter.
inline void add_note(note_ptr made, const parameter_type& type) noexcept {
    if (!made) return;
    made->type = &type;
    call_notes& here = notes_here();
    note_ptr before;
    if (here.calls == 0)
        drop_notes(std::exchange(here.first, nullptr));
    else
        before = take_note(here.first, type, made->object.get());
    made->next = here.first;
    here.first = made.release();
}

}  // namespace tenon::bind
