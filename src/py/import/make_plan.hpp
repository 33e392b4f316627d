// src/py/import/make_plan.hpp: which protocols a type speaks: every one is looked at once.
#pragma once

#include "array_interface.hpp"
#include "arrow.hpp"
#include "buffer.hpp"
#include "cuda_array_interface.hpp"
#include "dlpack.hpp"
#include "exchange_api.hpp"
#include "numpy.hpp"

namespace tenon::py::detail {

/// Looks at a type once, every protocol of it. False with an exception set on failure. The caller holds the
/// type.
[[nodiscard]] inline bool make_plan(PyTypeObject* type, interpreter& here, type_plan& plan) noexcept {
    plan = type_plan{};
    plan.type = type;
    // Dated before it is looked at, so that a change in the middle leaves the plan out of date.
    plan.seen_dlpack = ref::take(call::type_attr(type, here.dlpack)).get();  // gives the type its tag, too
    plan.seen_table = ref::take(call::type_attr(type, here.exchange_api)).get();
    plan.tag = version_tag(type);
    plan.interpreter = PyInterpreterState_Get();
    plan.departures = interpreter::departures();
    exchange::probe(type, here, plan);
    numpy::probe(type, here, plan);
    if (PyErr_Occurred() != nullptr) return false;  // interrupted
    buffer::probe(type, plan);
    plan.dlpack = place_of(type, here.dlpack);
    plan.dlpack_device = place_of(type, here.dlpack_device);
    plan.cuda_array_interface = place_of(type, here.cuda_array_interface);
    plan.array_interface = place_of(type, here.array_interface);
    plan.array_typestr = place_of(type, here.array_typestr);
    plan.arrow_array = place_of(type, here.arrow_array);
    plan.arrow_device_array = place_of(type, here.arrow_device_array);
    plan.arrow_stream = place_of(type, here.arrow_stream);
    const library_row* const row = library_of(type);
    plan.library = row;
    if (row != nullptr) {
        plan.immutable = row->immutable;
        plan.hands_out_legacy = row->hands_out_legacy && plan.dlpack != attribute_place::nowhere &&
                                !has_class_named(type, row->legacy_refused_by);
        plan.arrow_first = has_class_named(type, row->arrow_rather_for);
        plan.buffer_first = row->buffer_first && plan.has_buffer;
        plan.route.prefer_buffer = plan.buffer_first;
        // A subclass may have a `__dlpack__` of its own.
        const bool is_their_own = library_of_class(type) == row;
        // What only restricts is believed of any class that bears the name; the rest of the library's alone.
        const bool is_genuine = is_their_own && is_library_class(type, *row);
        if (is_genuine) plan.stream_of = find_library_stream(*row);
        if (PyErr_Occurred() != nullptr) return false;  // interrupted
        plan.stream_alone = row->stream_alone && (is_genuine || (is_their_own && row->immutable));
        plan.route.on_cuda = plan.stream_alone && row->always_cuda && plan.stream_of != nullptr;
    }
    if (plan.table != nullptr || plan.table_fault != nullptr || (row != nullptr && row->guarded)) {
        const bool named_torch = row != nullptr && row->name == "torch";
        const auto torch = named_torch ? torch_library::find(here) : torch_library::finding{nullptr, true};
        if (PyErr_Occurred() != nullptr) return false;
        if (!torch.settled) plan.tag = 0;  // not to be remembered
        plan.guards = tensor_guards::find(type, here, torch.library);
        plan.genuine_table = plan.table != nullptr && plan.guards.torch != nullptr &&
                             plan.guards.torch->lends_by_own_table(type, here) &&
                             exchange::detail::is_own_table(*plan.table, *plan.guards.torch);
        plan.only_fills = plan.genuine_table && !plan.guards.torch->asks_python(type, here);
    }
    if (PyErr_Occurred() != nullptr) return false;
    remember_plan(plan);
    exchange::common_terms::note(plan);
    return true;
}

/// A look at an object's class: its plan, a copy, and the class, held. Foreign code runs by what follows, and
/// has run by the look, which may even give the object another class. False with an exception set.
class looked_at {
public:
    TENON_COLD looked_at(PyObject* obj, interpreter& here) noexcept {
        static constexpr int most = 8;
        for (int i = 0; i < most; ++i) {
            type_ = class_of(obj);
            if (const type_plan* const known = find_plan_of(obj)) {
                plan_.emplace(*known);
            } else if (!make_plan(as_type(type_), here, plan_.emplace())) {
                plan_.reset();
                return;
            }
            if (Py_TYPE(obj) == as_type(type_)) return;
        }
        plan_.reset();
        PyErr_SetString(
            PyExc_TypeError,
            "tenon: cannot take a tensor from an object that gets another class whenever it is looked at");
    }
    explicit operator bool() const noexcept { return plan_.has_value(); }
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): whoever asks has looked
    [[nodiscard]] const type_plan& plan() const noexcept { return *plan_; }

private:
    ref type_;
    std::optional<type_plan> plan_;
};

}  // namespace tenon::py::detail
