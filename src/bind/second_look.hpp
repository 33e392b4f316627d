// src/bind/second_look.hpp: what was borrowed before other arguments were read is looked at again before the
// function runs, if code of others has run meanwhile: it may have given a tensor other memory.
//
// Nothing keeps a borrowed argument's memory: that is what makes it quick. A later argument's `__index__`,
// `__float__` or `__dlpack__`, or another thread while one of them runs, can do `t.data = other`. The second
// look runs no code of others itself, or it would be worth no more than the first; what cannot be looked at
// in this way is taken again, to be kept this time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include <tenon/detail/config.hpp>
#include <tenon/py/acquired.hpp>
#include <tenon/py/import.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/tensor/tensor_ref.hpp>
#include "words.hpp"

namespace tenon::bind {

/// What came of a second look; the later, the worse.
enum class sight : unsigned char {
    same,
    unclear,  ///< it takes code of others to tell: hold it
    changed,
};

/// Two descriptions of the same elements in the same memory.
[[nodiscard]] inline bool is_same_memory(const tensor_ref& a, const tensor_ref& b) noexcept {
    if (a.dtype() != b.dtype() || a.device() != b.device() || !std::ranges::equal(a.shape(), b.shape()))
        return false;
    for (std::size_t i = 0; i < a.shape().size(); ++i)
        if (a.shape(i) > 1 && a.stride(i) != b.stride(i)) return false;
    return a.empty() || a.data() == b.data();
}

/// Looks at an object again that was borrowed as `taken`: at NumPy's struct, or by the exchange table of a
/// library that is known to do no more than fill a struct in.
[[nodiscard]] inline sight look_again(PyObject* obj, const tensor_ref& taken, bool writable) noexcept {
    if (py::numpy::is_array(obj))
        return py::numpy::still_shows(obj, taken, writable) ? sight::same : sight::changed;
    const py::type_plan* const plan = py::known_plan(Py_TYPE(obj));
    if (plan == nullptr || plan->direct != py::direct_way::exchange_table || !plan->only_fills ||
        plan->guards.flags == nullptr || plan->guards.asked ||
        plan->table->dltensor_from_py_object_no_sync == nullptr)
        return sight::unclear;
    const py::torch_flags& flags = *plan->guards.flags;
    if (flags.is_mode_in_force()) return sight::unclear;
    py::acquired now;
    error why{};
    const py::rung_result got =
        py::exchange::detail::call_borrow(obj, py::exchange::detail::terms_of(*plan), now, why);
    if (got == py::rung_result::raised) PyErr_Clear();
    const bool still = got == py::rung_result::taken && is_same_memory(now, taken) &&
                       !flags.is_lazy(obj, now.dtype().is_complex()) &&
                       (!writable || !flags.requires_grad(obj));
    return still ? sight::same : sight::changed;
}

TENON_COLD inline void raise_changed(PyObject* obj) noexcept try {
    const std::string text = "tenon: an argument (" + type_name(obj) +
                             ") changed while the other arguments were read: its memory, shape or element "
                             "type is another now; convert the other arguments before the call, or pass a "
                             "copy";
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_RuntimeError, text.c_str());
} catch (...) {
    py::raise_caught();
}

}  // namespace tenon::bind
