// tenon/py/python.hpp: the one place that includes <Python.h>, and the shims that even out CPython 3.10 and
// later.
#pragma once

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>

#include <tenon/detail/config.hpp>

#if PY_VERSION_HEX < 0x030A0000
#error "Tenon needs CPython 3.10 or later"
#endif

namespace tenon::py {

/// The thread state of a thread that is known to be attached.
inline PyThreadState* current_thread_state() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked();
#else
    return _PyThreadState_UncheckedGet();
#endif
}

/// The thread state attached to this thread, or null: callable from any thread at any time.
inline PyThreadState* attached_thread_state() noexcept {
#if PY_VERSION_HEX >= 0x030C0000
    return current_thread_state();
#else
    // Before 3.12 "current" means whoever holds the GIL, this thread or another.
    PyThreadState* const holder = _PyThreadState_UncheckedGet();
    if (holder == PyGILState_GetThisThreadState()) return holder;
    // That knows threads of the main interpreter only. Another one's are told by their owner, at the price of
    // a look into a struct that may be another thread's: only where there are other interpreters at all.
    if (holder == nullptr || PyInterpreterState_Head() == PyInterpreterState_Main()) return nullptr;
    return holder->thread_id == PyThread_get_thread_ident() ? holder : nullptr;
#endif
}

/// The runtime is going: a thread state other than the one that ends it must not let go of the GIL, which it
/// would never get back.
inline bool is_finalizing() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing() != 0;
#else
    return _Py_IsFinalizing() != 0;
#endif
}

/// A number that changes whenever the type or one of its bases does, unique among the interpreter's types; 0
/// when the type has none.
inline unsigned version_tag(PyTypeObject* type) noexcept {
#if PY_VERSION_HEX < 0x030C0000
    if ((type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG) == 0) return 0;
    return type->tp_version_tag;
#elif defined(__GNUC__)
    return __atomic_load_n(&type->tp_version_tag, __ATOMIC_ACQUIRE);
#else
    return *const_cast<volatile unsigned*>(&type->tp_version_tag);
#endif
}

/// Excludes other threads from an object on builds without the GIL; nothing at all elsewhere.
class critical_section {
public:
#if defined(Py_GIL_DISABLED)
    explicit critical_section(PyObject* obj) noexcept { PyCriticalSection_Begin(&section_, obj); }
    ~critical_section() { PyCriticalSection_End(&section_); }
    critical_section(const critical_section&) = delete;
    critical_section& operator=(const critical_section&) = delete;

private:
    PyCriticalSection section_;
#else
    explicit critical_section(PyObject*) noexcept {}
#endif
};

}  // namespace tenon::py
