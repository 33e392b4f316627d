// src/py/export/protocols.hpp: the tables of functions by which CPython and DLPack reach a class of
// producers.
#pragma once

#include <tenon/py/producer.hpp>
#include "../import/all.hpp"

namespace tenon::py::detail {

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
TENON_API void fill_tables(producer_tables& tables, bool lends) noexcept;
/// Gives a type the exchange table, under the name of DLPack 1.3; false with an exception set.
[[nodiscard]] TENON_API bool publish_table(PyTypeObject* type, const producer_tables& tables) noexcept;

}  // namespace tenon::py::detail
