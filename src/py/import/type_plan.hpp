// src/py/import/type_plan.hpp: what is known of a Python type's protocols.
#pragma once

#include "../library/all.hpp"

namespace tenon::py {

/// What PyTorch's exchange table does not tell: conjugate and negative views show other numbers than their
/// memory holds, and what requires grad must not be written to from outside.
struct tensor_guards {
    object_query conjugate;
    object_query negative;
    object_query requires_grad;
    const torch_library* torch = nullptr;  ///< set for tensors of PyTorch's
    const torch_flags* flags = nullptr;    ///< says the same without running anything, where it is known
    bool asked = false;                    ///< the attributes must be asked; `flags` alone does not do

    [[nodiscard]] static tensor_guards find(PyTypeObject* type, const interpreter& names,
                                            const torch_library* torch) noexcept {
        const ref held = ref::borrow(reinterpret_cast<PyObject*>(type));
        tensor_guards found{object_query::find(type, names.is_conj), object_query::find(type, names.is_neg),
                            object_query::find(type, names.requires_grad)};
        if (torch != nullptr && torch->has(type)) found.torch = torch;
        if (found.torch != nullptr) found.flags = torch->flags();
        const bool told =
            found.flags != nullptr && torch->asks_by(found.conjugate, found.negative, found.requires_grad);
        found.asked =
            !told && (found.conjugate.exists() || found.negative.exists() || found.requires_grad.exists());
        return found;
    }
};

/// Where an attribute can be found.
enum class attribute_place : unsigned char {
    nowhere,   ///< neither the type nor an instance can have it
    method,    ///< a plain method of the type
    anywhere,  ///< a property, an instance attribute, `__getattr__`: must be asked for
};

/// The caller holds the type.
[[nodiscard]] inline attribute_place place_of(PyTypeObject* type, PyObject* name) noexcept {
    const ref found = ref::take(call::type_attr(type, name));
    if (found) {
        const bool plain = (Py_TYPE(found.get())->tp_flags & Py_TPFLAGS_METHOD_DESCRIPTOR) != 0 &&
                           type->tp_getattro == PyObject_GenericGetAttr;
        return plain ? attribute_place::method : attribute_place::anywhere;
    }
#if PY_VERSION_HEX >= 0x030B0000
    const bool has_dict = type->tp_dictoffset != 0 || (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) != 0;
#else
    const bool has_dict = type->tp_dictoffset != 0;
#endif
    const bool generic = type->tp_getattro == PyObject_GenericGetAttr;
    return generic && !has_dict ? attribute_place::nowhere : attribute_place::anywhere;
}

/// What an object has under the name: nothing where there is none, or None. False with an exception set.
[[nodiscard]] inline bool read_attribute(PyObject* obj, PyObject* name, ref& out) noexcept {
    PyObject* found = nullptr;
    if (call::optional_attr(obj, name, &found) < 0) return false;
    out = ref::take(found);
    if (out.get() == Py_None) out = ref();
    return true;
}

/// Calls a method that may be a plain one, a property, an instance attribute or nothing. `args[0]` is the
/// object, and the slot before it is free for the callee. `found` tells absence (also a method set to None)
/// from a call that failed.
[[nodiscard]] inline ref call_protocol_method(attribute_place place, PyObject* name, PyObject* const* args,
                                              PyObject* keywords, bool& found) noexcept {
    found = place != attribute_place::nowhere;
    if (!found) return {};
    if (place == attribute_place::method) return ref::take(call::keyword_method(name, args, keywords));
    ref bound;
    if (!read_attribute(args[0], name, bound)) return {};
    found = static_cast<bool>(bound);
    return found ? ref::take(call::keyword_call(bound.get(), args + 1, keywords)) : ref();
}
/// The same without keywords.
[[nodiscard]] inline ref call_protocol_method(attribute_place place, PyObject* name, PyObject* obj,
                                              bool& found) noexcept {
    PyObject* args[2] = {nullptr, obj};
    return call_protocol_method(place, name, args + 1, nullptr, found);
}

/// How `__dlpack__` of a type wants to be called.
enum class dlpack_dialect : unsigned char {
    unknown,  ///< not called yet: try `max_version`, step back once on TypeError
    modern,   ///< takes `max_version`
    ancient,  ///< takes `stream` alone
};

/// How an array of the type's own library is made from a tensor.
enum class maker_kind : unsigned char {
    unresolved,      ///< not looked for yet
    none,            ///< the type belongs to no library that makes arrays
    exchange_table,  ///< the type's own table does
    numpy,           ///< NumPy's C functions do
    function,        ///< a function that takes a producer object
    of_capsule,      ///< a function that takes a legacy capsule
    type_method,     ///< `from_dlpack` of the type itself
};

/// What has been learned of a type's objects by importing them: the one part of a plan that changes.
struct route {
    dlpack_dialect dialect = dlpack_dialect::unknown;
    bool prefer_buffer = false;  ///< ask for a buffer before `__dlpack__`; dropped when a buffer is refused
    bool on_cuda = false;        ///< the last object that was asked plainly was on CUDA, or all of them are
};

/// How arrays like the type's objects are made, found when the first one is.
struct maker_plan {
    maker_kind kind = maker_kind::unresolved;
    interpreter* home = nullptr;  ///< the record that keeps the two functions
    PyObject* from = nullptr;     ///< borrowed: what makes an array of a producer or a capsule
    PyObject* empty = nullptr;    ///< borrowed: what makes an empty one; null when there is none
};

/// What a type speaks, seen once; then the route.
struct type_plan {
    PyTypeObject* type = nullptr;
    const library_row* library = nullptr;  ///< that it comes from, if that is known
    unsigned tag = 0;
    unsigned departures = 0;  ///< with the address below, the interpreter of a heap type
    PyInterpreterState* interpreter = nullptr;
    bool any_interpreter = false;  ///< a static type: the same in all of them
    bool numpy_struct = false;     ///< NumPy's struct, of the layout we know
    bool has_buffer = false;
    bool masked = false;         ///< a numpy.ma array: what the mask hides must not be shown
    bool dtype_first = false;    ///< `__dlpack__` must not be called before `dtype.name` is known to be sound
    bool buffer_first = false;   ///< its route may prefer buffers
    bool genuine_table = false;  ///< the table is PyTorch's own: what it lends is writable
    bool only_fills = false;     ///< and lending runs no code of others: a struct is filled in
    bool immutable = false;      ///< never to be written to
    bool hands_out_legacy = false;  ///< its library gives it to anybody as a legacy struct, read-only or not
    bool arrow_first = false;       ///< Arrow's interface is asked in place of `__dlpack__`
    bool stream_alone = false;      ///< `__dlpack__` is best asked with the stream alone
    attribute_place dlpack = attribute_place::nowhere;
    attribute_place dlpack_device = attribute_place::nowhere;
    attribute_place cuda_array_interface = attribute_place::nowhere;
    attribute_place array_interface = attribute_place::nowhere;
    attribute_place array_typestr = attribute_place::nowhere;
    attribute_place arrow_array = attribute_place::nowhere;
    attribute_place arrow_device_array = attribute_place::nowhere;
    attribute_place arrow_stream = attribute_place::nowhere;
    const abi::exchange_api* table = nullptr;
    const char* table_fault = nullptr;  ///< why a published table cannot be used
    const void* seen_dlpack = nullptr;  ///< what the attributes were; only ever compared
    const void* seen_table = nullptr;
    library_stream stream_of = nullptr;
    tensor_guards guards;

    py::route route;
    maker_plan maker;

    /// Its table lends without running code of others, and what it lends need not be asked about.
    [[nodiscard]] bool lends_plainly() const noexcept {
        return only_fills && !guards.asked && table->dltensor_from_py_object_no_sync != nullptr;
    }
};

}  // namespace tenon::py
