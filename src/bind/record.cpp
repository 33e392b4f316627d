// src/bind/record.cpp: the notes of a call, and an exception that waits for its end.
#include "record.hpp"
#include <tenon/bind/call.hpp>
#include <tenon/py/call.hpp>

namespace tenon::bind {

TENON_INLINE call_frame::call_frame() noexcept : outer_(notes_here()) {
    notes_here() = {nullptr, nullptr, outer_.calls + 1};
}

TENON_INLINE call_frame::~call_frame() {
    call_notes& here = notes_here();
    note* const dropped = here.first;
    here = outer_;
    if (dropped == nullptr) [[likely]]
        return;
    const py::error_guard aside;
    drop_notes(dropped);
}

TENON_INLINE PyObject* call_frame::end(PyObject* result) noexcept {
    PyObject* const waiting = std::exchange(notes_here().put_off, nullptr);
    if (waiting == nullptr) [[likely]]
        return result;
    PyErr_Clear();
    py::call::drop(result);
    py::restore_exception(py::ref::take(waiting));
    return nullptr;
}

TENON_INLINE bool is_call_noted() noexcept { return notes_here().calls != 0; }

TENON_INLINE bool is_put_off() noexcept { return notes_here().put_off != nullptr; }

TENON_INLINE void put_off() noexcept {
    call_notes& here = notes_here();
    if (here.calls == 0)
        py::call::write_unraisable();
    else if (here.put_off != nullptr)
        PyErr_Clear();  // the first one stands
    else
        here.put_off = py::pending_exception().release();
}

TENON_INLINE void forget_notes() noexcept {
    call_notes& here = notes_here();
    if (here.calls != 0 || here.first == nullptr) return;
    const py::error_guard aside;
    drop_notes(std::exchange(here.first, nullptr));
}

}  // namespace tenon::bind
