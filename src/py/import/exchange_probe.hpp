// src/py/import/exchange_probe.hpp: finds the C exchange table that a type publishes, and whether it can be
// one.
#pragma once

#include "type_plan.hpp"

namespace tenon::py::exchange {

namespace detail {

inline constexpr const char* null_function = "a mandatory function of the table is null";
inline constexpr const char* no_functions = "the functions of the table cannot be functions";

[[nodiscard]] inline std::array<const void*, 5> functions_of(const abi::exchange_api& table) noexcept {
    return {
        reinterpret_cast<const void*>(table.managed_tensor_allocator),
        reinterpret_cast<const void*>(table.managed_tensor_from_py_object_no_sync),
        reinterpret_cast<const void*>(table.managed_tensor_to_py_object_no_sync),
        reinterpret_cast<const void*>(table.dltensor_from_py_object_no_sync),
        reinterpret_cast<const void*>(table.current_work_stream),
    };
}

/// Follows `prev_api` to the major version we speak; a chain that does not end is a lie.
[[nodiscard]] inline const abi::exchange_api* usable_table(const void* published,
                                                           const char*& fault) noexcept {
    const auto none = [&](const char* why) -> const abi::exchange_api* {
        fault = why;
        return nullptr;
    };
    const auto* header = static_cast<const abi::exchange_api_header*>(published);
    for (int steps = 0; header != nullptr && steps < 16; ++steps, header = header->prev_api) {
        if (!tenon::detail::is_readable<sizeof *header>(header))
            return none("the pointer to the table cannot be one");
        if (header->version.major != abi::dlpack_major) continue;
        const auto* table = reinterpret_cast<const abi::exchange_api*>(header);
        if (!tenon::detail::is_readable<sizeof *table>(table) ||
            table->managed_tensor_from_py_object_no_sync == nullptr)
            return none(null_function);
        for (const void* function : functions_of(*table))  // by its address alone
            if (tenon::detail::is_implausible_function(function)) return none(no_functions);
        return table;
    }
    return none("no version of the table has major version 1");
}

/// Whether the functions of a table can be functions. Anything at all can be written as an integer, and what
/// it points to may begin like a table.
[[nodiscard]] inline bool has_functions(const abi::exchange_api& table) noexcept {
    return tenon::detail::are_executable(functions_of(table));
}

/// Whether a table is PyTorch's own, and all its functions are.
[[nodiscard]] inline bool is_own_table(const abi::exchange_api& table, const torch_library& torch) noexcept {
    return torch.contains(&table) &&
           !is_any(functions_of(table), [&](const void* f) { return f != nullptr && !torch.contains(f); });
}

/// The pointer an attribute stands for: a capsule (1.3) or, under the 1.2 name, also an integer.
[[nodiscard]] inline const void* published_pointer(PyObject* attribute, bool int_allowed) noexcept {
    if (PyCapsule_CheckExact(attribute)) return pointer_in(attribute, capsule_exchange_api);
    if (!int_allowed || !PyLong_CheckExact(attribute)) return nullptr;
    const void* address = PyLong_AsVoidPtr(attribute);
    if (PyErr_Occurred() != nullptr) PyErr_Clear();
    return address;
}

/// Whether a class that comes before the one that brought the table, along the MRO, has a `__dlpack__` of its
/// own.
[[nodiscard]] inline bool is_overridden(PyTypeObject* type, PyObject* dlpack, PyObject* table) noexcept {
    const ref mro = ref::borrow(type->tp_mro);  // a key's __eq__ may give the type another one
    const Py_ssize_t n = mro && PyTuple_Check(mro.get()) ? PyTuple_GET_SIZE(mro.get()) : 0;
    for (Py_ssize_t i = 0; i < n; ++i) {
        auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro.get(), i));
#if PY_VERSION_HEX >= 0x030C0000
        const ref dict = ref::take(PyType_GetDict(base));
#else
        const ref dict = ref::borrow(base->tp_dict);
#endif
        for (PyObject* const name : {table, dlpack}) {
            const int found = dict ? call::dict_contains(dict.get(), name) : 0;
            if (found > 0) return name == dlpack;
            if (found < 0) PyErr_Clear();
        }
    }
    return false;
}

}  // namespace detail

/// Looks for a table on the type (never the instance) and notes it in the plan.
inline void probe(PyTypeObject* type, const interpreter& names, type_plan& plan) noexcept {
    PyObject* const spellings[] = {names.exchange_api, names.exchange_api_1_2};
    for (PyObject* const name : spellings) {
        const ref attribute = ref::take(call::type_attr(type, name));
        if (!attribute) continue;
        const void* const published =
            detail::published_pointer(attribute.get(), name == names.exchange_api_1_2);
        if (published == nullptr) continue;
        // A subclass that overrides `__dlpack__` below the class that brought the table means the override.
        if (detail::is_overridden(type, names.dlpack, name)) {
            plan.table_fault = "the type overrides __dlpack__ of the class that has the table";
            return;
        }
        plan.table = detail::usable_table(published, plan.table_fault);
        if (plan.table == nullptr) continue;
        if (PyLong_CheckExact(attribute.get()) && !detail::has_functions(*plan.table)) {
            plan.table = nullptr;
            plan.table_fault = detail::no_functions;
            continue;
        }
        plan.table_fault = nullptr;
        return;
    }
}

}  // namespace tenon::py::exchange
