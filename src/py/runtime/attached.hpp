// src/py/runtime/attached.hpp: what is said on a thread that needs the GIL and does not hold it.
#pragma once

#include "base.hpp"
#include "call.hpp"

namespace tenon::py {

/// What is said of it, after what was called.
inline constexpr const char* needs_gil =
    " needs the GIL, which this thread does not hold; call it before the GIL is released, or take it back "
    "for the call";

namespace detail {

/// Runs `set`, which sets an exception, also on a thread that has let go of the GIL: the exception stands
/// when the thread takes it back. A thread that Python knows nothing of has nowhere to keep one: there it is
/// reported.
template <class Set>
void raise_attached(Set&& set) noexcept {
    if (attached_thread_state() != nullptr) [[likely]]
        return set();
    if (Py_IsInitialized() == 0 || is_finalizing()) return;
    const bool is_known = PyGILState_GetThisThreadState() != nullptr;
    const PyGILState_STATE state = foreign_code([] { return PyGILState_Ensure(); });
    set();
    if (!is_known) call::write_unraisable();
    PyGILState_Release(state);
}

TENON_COLD inline void raise_detached() noexcept {
    raise_attached([] { PyErr_Format(PyExc_RuntimeError, "tenon: this%s", needs_gil); });
}

}  // namespace detail
}  // namespace tenon::py
