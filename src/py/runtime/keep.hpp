// src/py/runtime/keep.hpp: what keeps imported memory alive: Python objects, buffers, structs of others, and
// chains of our own objects.
#pragma once

#include "base.hpp"
#include "interpreter.hpp"

namespace tenon::py::detail {

// What tensors imported from Python release, each attached to the interpreter they came from (F15-F19).
inline void release_object(void* subject, void* home) noexcept {
    auto* const object = static_cast<PyObject*>(subject);
#if !defined(Py_GIL_DISABLED)
    // Not the last reference: nothing runs, so there is no exception to keep.
    if (static_cast<interpreter*>(home)->is_here() && Py_REFCNT(object) > 1) {
        Py_DECREF(object);
        return;
    }
#endif
    static_cast<interpreter*>(home)->enter([&] { call::drop(object); });
}
template <bool Versioned>
void release_managed(void* subject, void* home) noexcept {
    static_cast<interpreter*>(home)->enter([&] { foreign::call_deleter(subject, Versioned); });
}
/// For a buffer that is held no longer than a call: the thread is attached where it began, unless it is being
/// ended while the caller's function runs.
inline void release_buffer_in_place(void* subject, void*) noexcept {
    if (attached_thread_state() == nullptr) return;
    const error_guard guard;
    call::release_buffer(static_cast<Py_buffer*>(subject));
}
inline void release_buffer(void* subject, void* home) noexcept {
    static_cast<interpreter*>(home)->enter([&] {
        call::release_buffer(static_cast<Py_buffer*>(subject));
        PyMem_Free(subject);
    });
}

[[nodiscard]] inline keep_alive keep_object(PyObject* obj, interpreter* home) noexcept {
    Py_INCREF(obj);
    return {obj, release_object, home, owner_kind::object};
}
/// Keeps an object and what its interface was read from; empty with an exception set.
[[nodiscard]] inline keep_alive keep_interface(PyObject* obj, PyObject* interface,
                                               interpreter* home) noexcept {
    PyObject* const both = PyTuple_Pack(2, obj, interface);
    return both != nullptr ? keep_alive(both, release_object, home, owner_kind::interface) : keep_alive();
}
/// An array that a library made, and what it lent its memory by, which need not be kept by the array: its
/// library may hand out a copy.
struct kept_array {
    ref array;
    keep_alive memory;
};
inline void release_kept_array(void* subject, void* home) noexcept {
    static_cast<interpreter*>(home)->enter([&] { delete static_cast<kept_array*>(subject); });
}
/// Keeps both; throws `std::bad_alloc`.
[[nodiscard]] inline keep_alive keep_array(ref array, keep_alive memory, interpreter* home) {
    return {new kept_array{std::move(array), std::move(memory)}, release_kept_array, home, owner_kind::array};
}
/// The one object of Python's that an owner holds a reference of by itself, borrowed; null where there is
/// none.
[[nodiscard]] inline PyObject* referenced_by(const keep_alive& any) noexcept {
    const keep_alive& owner = gpu::kept_by(any);
    if (owner.is(owner_kind::object) || owner.is(owner_kind::interface))
        return static_cast<PyObject*>(owner.subject());
    if (owner.is(owner_kind::array)) return static_cast<kept_array*>(owner.subject())->array.get();
    return owner.is(owner_kind::buffer) ? static_cast<Py_buffer*>(owner.subject())->obj : nullptr;
}
/// An object that is held, as the collector may see it. Before 3.13 it would clear a memoryview that still
/// lends its buffer, which then crashes (gh-77894): neither that may be seen, nor what 3.12 puts between a
/// `__buffer__` and it.
[[nodiscard]] inline PyObject* visible(PyObject* held) noexcept {
#if PY_VERSION_HEX < 0x030D0000
    if (held != nullptr &&
        (PyMemoryView_Check(held) || std::strcmp(Py_TYPE(held)->tp_name, "_buffer_wrapper") == 0))
        return nullptr;
#endif
    return held;
}
/// The array, or another object, that is kept as it is and at once; null when the memory is kept by other
/// means.
[[nodiscard]] inline PyObject* array_kept_by(const keep_alive& owner) noexcept {
    return owner.is(owner_kind::object) || owner.is(owner_kind::array) ? referenced_by(owner) : nullptr;
}
/// The object that the memory belongs to, borrowed; null where only its producer knows.
[[nodiscard]] inline PyObject* object_behind(const keep_alive& any) noexcept {
    const keep_alive& owner = gpu::kept_by(any);
    if (owner.is(owner_kind::shared))
        return object_behind(static_cast<tenon::detail::shared_owner*>(owner.subject())->owner);
    PyObject* const held = referenced_by(owner);
    return owner.is(owner_kind::interface) ? PyTuple_GET_ITEM(held, 0) : held;
}
[[nodiscard]] inline keep_alive keep_managed(void* managed, bool versioned, interpreter* home) noexcept {
    return {managed, versioned ? release_managed<true> : release_managed<false>, home, owner_kind::managed};
}

}  // namespace tenon::py::detail

namespace tenon::py {

/// What objects of ours begin with that keep one another alive in long chains, which are taken down without
/// recursing into each. CPython's own way with chains, the trashcan, goes 50 levels deep, but
/// thousands in 3.13, which is more than the stacks of many threads have room for.
struct chained_object {
    PyObject_HEAD interpreter* home;  ///< set by whoever makes the object
    tenon::detail::release_chain::link turn;

    /// The `tp_dealloc` of its type: `Dealloc`, now or when its turn comes.
    template <void (*Dealloc)(PyObject*) noexcept>
    static void dealloc_in_turn(PyObject* self) noexcept {
        PyObject_GC_UnTrack(self);
        tenon::detail::release_chain::run(&reinterpret_cast<chained_object*>(self)->turn, now<Dealloc>,
                                          later<Dealloc>);
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
