// src/bind/look_again.hpp: what was borrowed is looked at a second time, after code of others may have run.
#pragma once

#include "../py/export/all.hpp"
#include "words.hpp"

namespace tenon::bind {

/// What came of a second look; the later, the worse.
enum class sight : unsigned char {
    same,
    unclear,  ///< it takes code of others to tell: hold it
    changed,
};

/// Looks at an object again that was borrowed as `taken`: at NumPy's struct, or by the exchange table of a
/// library that is known to do no more than fill a struct in.
[[nodiscard]] inline sight look_again(PyObject* obj, const tensor_ref& taken, bool writable) noexcept {
    if (py::numpy::is_array(obj))
        return py::numpy::still_shows(obj, taken, writable) ? sight::same : sight::changed;
    if constexpr (py::detail::finding_runs_code) return sight::unclear;
    const py::type_plan* const plan = py::find_plan_of(obj);
    if (plan == nullptr || !plan->lends_plainly() || plan->guards.flags == nullptr) return sight::unclear;
    const py::torch_flags& flags = *plan->guards.flags;
    if (flags.is_mode_in_force()) return sight::unclear;
    py::acquired now;
    const py::outcome got = py::exchange::call_borrow(obj, py::exchange::terms_of(*plan), true, now);
    if (got == py::outcome::raised) PyErr_Clear();
    const bool still = got == py::outcome::taken && py::is_same_memory(now, taken) &&
                       !flags.is_lazy(obj, now.dtype().is_complex()) &&
                       (!writable || !flags.requires_grad(obj));
    return still ? sight::same : sight::changed;
}

/// `is_lent`: the function runs already, and wants to keep it.
TENON_COLD inline void raise_changed(PyObject* obj, bool is_lent) noexcept try {
    const std::string text =
        sentence({"tenon: an argument (", type_name(obj),
                  is_lent ? ") changed while the function ran, before it was kept"
                          : ") changed while the other arguments were read",
                  ": its memory, shape or element type is another now; ",
                  is_lent ? "keep it before anything else runs"
                          : "convert the other arguments before the call, or pass a copy"});
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_RuntimeError, text.c_str());
} catch (...) {
    py::raise_caught();
}

}  // namespace tenon::bind
