// src/py/runtime/chained_object.hpp: objects of ours that keep one another alive in long chains, taken down
// without recursing into each.
#pragma once

#include "base.hpp"
#include "interpreter.hpp"

namespace tenon::py {

/// What such an object begins with. CPython's own way with chains, the trashcan, goes 50 levels deep, but
/// thousands in 3.13, which is more than the stacks of many threads have room for.
struct chained_object {
    PyObject_HEAD interpreter* home;  ///< set by whoever makes the object
    tenon::detail::release_chain::link turn;

    /// The `tp_dealloc` of its type: `Dealloc`, now or when its turn comes.
    template <void (*Dealloc)(PyObject*) noexcept>
    static void dealloc_in_turn(PyObject* self) noexcept {
        PyObject_GC_UnTrack(self);
        tenon::detail::release_chain::run<now<Dealloc>, later<Dealloc>>(
            &reinterpret_cast<chained_object*>(self)->turn);
    }

private:
    using link = tenon::detail::release_chain::link;

    [[nodiscard]] static PyObject* object_of(link* turn) noexcept {
        return reinterpret_cast<PyObject*>(reinterpret_cast<char*>(turn) - offsetof(chained_object, turn));
    }
    template <void (*Dealloc)(PyObject*) noexcept>
    static void now(link* turn) noexcept {
        Dealloc(object_of(turn));
    }
    /// The outermost release may be one that needs no Python, on a thread that is not attached by then.
    template <void (*Dealloc)(PyObject*) noexcept>
    static void later(link* turn) noexcept {
        PyObject* const self = object_of(turn);
        reinterpret_cast<chained_object*>(self)->home->enter([&] { Dealloc(self); });
    }
};

}  // namespace tenon::py
