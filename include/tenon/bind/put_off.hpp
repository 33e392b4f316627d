// tenon/bind/put_off.hpp: an exception that ends the call, raised where nothing may be thrown: it waits for
// the end of that call, and never for another.
#pragma once

#include <utility>

#include <tenon/detail/config.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/py/ref.hpp>
#include "../../../src/py/runtime/call.hpp"

namespace tenon::bind {

/// Ctrl-C, an exit, no memory, out of an item of a list that a binder loads by functions which may not throw.
/// One waits on each thread, for the innermost call that is under way there.
class put_off_exception {
public:
    /// Stands around a call of the binder's. What an outer call has put off is kept aside meanwhile.
    class call {
    public:
        call() noexcept : outer_(std::exchange(here().exception, nullptr)) { ++here().calls; }
        ~call() {
            --here().calls;
            here().exception = outer_;
        }
        call(const call&) = delete;
        call& operator=(const call&) = delete;

        /// What the call comes to: `result`, or the exception that was put off. That wins over what the
        /// binder makes of the refusal, and over another overload that took the arguments.
        [[nodiscard]] PyObject* end(PyObject* result) noexcept {
            PyObject* const waiting = std::exchange(here().exception, nullptr);
            if (waiting == nullptr) [[likely]]
                return result;
            PyErr_Clear();
            py::call::drop(result);
            py::restore_exception(py::ref::take(waiting));
            return nullptr;
        }

    private:
        PyObject* outer_;
    };

    /// One is waiting for the call that is under way: nothing more need be asked for it.
    [[nodiscard]] static bool is_waiting() noexcept { return here().exception != nullptr; }

    /// Takes the pending exception. Outside of any call that could raise it, it is reported and dropped.
    static void keep() noexcept {
        waiting& w = here();
        if (w.calls == 0)
            py::call::write_unraisable();
        else if (w.exception != nullptr)
            PyErr_Clear();  // the first one stands
        else
            w.exception = py::pending_exception().release();
    }

private:
    struct waiting {
        PyObject* exception = nullptr;
        unsigned calls = 0;  ///< those under way that look for it at their end
    };
    TENON_PRIVATE static waiting& here() noexcept {
        static thread_local constinit waiting w;
        return w;
    }
};

}  // namespace tenon::bind
