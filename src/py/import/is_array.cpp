// src/py/import/is_array.cpp: whether an object speaks a protocol of tensors, without taking one.
#include "all.hpp"

namespace tenon::py {

namespace detail {

/// Whether the class has the attribute, or its objects may have it and this one does. A property is not asked
/// for what it would give: that may be a copy of all the memory.
[[nodiscard]] inline bool has_protocol(PyObject* obj, const type_plan& plan, attribute_place place,
                                       PyObject* name) noexcept {
    if (place != attribute_place::anywhere) return place == attribute_place::method;
    if (ref::take(call::type_attr(plan.type, name))) return true;
    ref found;
    return read_attribute(obj, name, found) ? static_cast<bool>(found) : (void(forget_answer()), false);
}

[[nodiscard]] inline bool speaks_any_protocol(PyObject* obj, interpreter& here) noexcept {
    if (PyType_Check(obj) != 0 || obj == Py_None) return false;
    if (PyCapsule_CheckExact(obj))
        return PyCapsule_IsValid(obj, capsule_versioned) != 0 || PyCapsule_IsValid(obj, capsule_legacy) != 0;
    const nesting_level level;
    if (!level) return false;
    const looked_at seen(obj, here);
    if (!seen) return false;
    const type_plan& plan = seen.plan();
    if (plan.table != nullptr || plan.numpy_struct || plan.has_buffer) return true;
    const std::pair<attribute_place, PyObject*> protocols[] = {
        {plan.dlpack, here.dlpack},
        {plan.cuda_array_interface, here.cuda_array_interface},
        {plan.array_interface, here.array_interface},
        {plan.arrow_array, here.arrow_array},
        {plan.arrow_device_array, here.arrow_device_array},
        {plan.arrow_stream, here.arrow_stream},
    };
    return is_any(protocols, [&](const auto& protocol) {
        return PyErr_Occurred() == nullptr && has_protocol(obj, plan, protocol.first, protocol.second);
    });
}

}  // namespace detail

TENON_INLINE bool is_array(PyObject* obj) noexcept {
    interpreter* const here = interpreter::current();
    if (here == nullptr || obj == nullptr) return false;
    const error_guard keep;  // what is left in the end, no memory say, is reported: nobody looks for it
    const bool found = detail::speaks_any_protocol(obj, *here);
    if (!forget_answer() && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0) {
        PyErr_Clear();
        PyErr_SetInterrupt();  // Ctrl-C comes again, where an exception is looked for
    }
    return found;
}

}  // namespace tenon::py
