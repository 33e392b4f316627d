// src/py/export/protocols.hpp: a class of producers is given the tables of functions by which CPython and
// DLPack reach its objects.
#pragma once

#include <tenon/py/producer.hpp>
#include "../import/all.hpp"
#include "exchange_table.hpp"

namespace tenon::py::detail {

/// When the memory is ready, where its stream does not tell.
[[nodiscard]] TENON_PRIVATE inline const gpu::ready_event& ready_of(answer::source s,
                                                                    PyObject* self) noexcept {
    static const gpu::ready_event none;
    return s.ready != nullptr ? s.ready(self) : none;
}

/// Adds to a type's dictionary, immutable types included; false with an exception set.
[[nodiscard]] inline bool add_to_type(PyTypeObject* type, const char* name, ref value) noexcept {
    if (!value) return false;
#if PY_VERSION_HEX >= 0x030C0000
    const ref dict = ref::take(PyType_GetDict(type));
#else
    const ref dict = ref::borrow(type->tp_dict);
#endif
    return dict && call::set_dict_item(dict.get(), name, value.get()) == 0;
}

/// Fills the tables in. They are the class's for good.
inline void fill_tables(producer_tables& t, bool lends) noexcept {
    const PyMethodDef methods[] = {
        {"__dlpack__", as_method(t.dlpack), METH_FASTCALL | METH_KEYWORDS,
         "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
         "Export as a DLPack capsule over the same memory."},
        {"__dlpack_device__", t.dlpack_device, METH_NOARGS,
         "__dlpack_device__($self, /)\n--\n\nThe device as a (type, id) pair."},
        {"__array__", as_method(t.array), METH_FASTCALL | METH_KEYWORDS,
         "__array__($self, /, dtype=None, copy=None)\n--\n\nThe same memory as a numpy.ndarray."},
        {"__arrow_c_schema__", t.arrow_schema, METH_NOARGS,
         "__arrow_c_schema__($self, /)\n--\n\nThe element type as a capsule of Arrow's."},
        {"__arrow_c_array__", as_method(t.arrow_array), METH_FASTCALL | METH_KEYWORDS,
         "__arrow_c_array__($self, /, requested_schema=None)\n--\n\n"
         "The same memory as an Arrow array, if it has one axis without gaps: two capsules."},
        {"__arrow_c_device_array__", as_method(t.arrow_device_array), METH_FASTCALL | METH_KEYWORDS,
         "__arrow_c_device_array__($self, /, requested_schema=None, **kwargs)\n--\n\n"
         "The same on any device."},
        {nullptr, nullptr, 0, nullptr},
    };
    const PyGetSetDef attributes[] = {
        {"__array_interface__", t.array_interface, nullptr, "NumPy's array interface, for host memory.",
         nullptr},
        {"__cuda_array_interface__", t.cuda_array_interface, nullptr,
         "The CUDA array interface, for CUDA memory.", nullptr},
        {nullptr, nullptr, nullptr, nullptr, nullptr},
    };
    static_assert(sizeof methods == sizeof t.methods && sizeof attributes == sizeof t.attributes);
    std::copy(std::begin(methods), std::end(methods), t.methods);
    std::copy(std::begin(attributes), std::end(attributes), t.attributes);
    t.buffer = {t.get_buffer, t.release_buffer};
    t.exchange = {{{abi::dlpack_major, abi::dlpack_minor}, nullptr},
                  &allocate_managed,
                  t.table_own,
                  &table_to_object,
                  lends ? t.table_borrow : nullptr,
                  &default_stream};
}

/// Gives a type what goes into its dictionary: methods, attributes, and the exchange table by the name it has
/// in DLPack 1.3. False with an exception set on failure.
[[nodiscard]] inline bool add_tables(PyTypeObject* type, producer_tables& t) noexcept {
    for (PyMethodDef* m = t.methods; m->ml_name != nullptr; ++m)
        if (!add_to_type(type, m->ml_name, ref::take(PyDescr_NewMethod(type, m)))) return false;
    for (PyGetSetDef* g = t.attributes; g->name != nullptr; ++g)
        if (!add_to_type(type, g->name, ref::take(PyDescr_NewGetSet(type, g)))) return false;
    return add_to_type(type, "__dlpack_c_exchange_api__",
                       ref::take(PyCapsule_New(&t.exchange, capsule_exchange_api, nullptr)));
}

}  // namespace tenon::py::detail
