// src/py/runtime/keep.hpp: what keeps imported memory alive: Python objects, buffers, structs of others.
#pragma once

#include <utility>

#include <tenon/py/acquired.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/tensor/foreign.hpp>
#include <tenon/tensor/keep_alive.hpp>

#include "call.hpp"
#include "exceptions.hpp"
#include "interpreter.hpp"

namespace tenon::py {

namespace detail {

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
/// Of a pair: an object, and the interface it gave.
inline void release_interface(void* subject, void* home) noexcept { release_object(subject, home); }
inline void release_versioned(void* subject, void* home) noexcept {
    static_cast<interpreter*>(home)->enter([&] { foreign::call_deleter(subject, true); });
}
inline void release_legacy(void* subject, void* home) noexcept {
    static_cast<interpreter*>(home)->enter([&] { foreign::call_deleter(subject, false); });
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
    return {obj, release_object, home};
}
/// Keeps an object and what its interface was read from; empty with an exception set.
[[nodiscard]] inline keep_alive keep_interface(PyObject* obj, PyObject* interface,
                                               interpreter* home) noexcept {
    PyObject* const both = PyTuple_Pack(2, obj, interface);
    return both != nullptr ? keep_alive(both, release_interface, home) : keep_alive();
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
    return {new kept_array{std::move(array), std::move(memory)}, release_kept_array, home};
}
/// The array or other object that is kept, borrowed, or null when it is kept by other means.
[[nodiscard]] inline PyObject* object_kept_by(const keep_alive& owner) noexcept {
    if (owner.release_function() == release_object) return static_cast<PyObject*>(owner.subject());
    return owner.release_function() == release_kept_array
               ? static_cast<kept_array*>(owner.subject())->array.get()
               : nullptr;
}
[[nodiscard]] inline keep_alive keep_managed(void* managed, bool versioned, interpreter* home) noexcept {
    return {managed, versioned ? release_versioned : release_legacy, home};
}

}  // namespace detail

}  // namespace tenon::py
