// src/py/import/interface.hpp: reading the mapping behind `__array_interface__` and
// `__cuda_array_interface__`, field by field.
#pragma once

#include "buffer.hpp"

namespace tenon::py {

/// The fields of an array interface, each an owned reference or nothing. Taken out before any is read,
/// because reading one may run code that changes the mapping.
struct interface_fields {
    ref version, shape, typestr, data, strides, offset, mask, descr, stream;

    struct named {
        ref interface_fields::* field;
        const char* key;
    };
    TENON_PRIVATE static constexpr named all[] = {
        {&interface_fields::version, "version"}, {&interface_fields::shape, "shape"},
        {&interface_fields::typestr, "typestr"}, {&interface_fields::data, "data"},
        {&interface_fields::strides, "strides"}, {&interface_fields::offset, "offset"},
        {&interface_fields::mask, "mask"},       {&interface_fields::descr, "descr"},
        {&interface_fields::stream, "stream"},
    };

    /// From the dictionary, or from attributes of the object (`__array_shape__` and so on). False with an
    /// exception set when a lookup raised; None counts as not given.
    [[nodiscard]] bool read(PyObject* source, bool is_dict) noexcept {
        for (const named& n : all) {
            const ref key = ref::take(PyUnicode_FromFormat(is_dict ? "%s" : "__array_%s__", n.key));
            if (!key) return false;
            PyObject* found = nullptr;
            const int there = is_dict ? call::dict_item(source, key.get(), &found)
                                      : call::optional_attr(source, key.get(), &found);
            if (there < 0) return false;
            ref value = ref::take(found);
            if (value && value.get() != Py_None) this->*n.field = std::move(value);
        }
        return true;
    }
    /// From what must be a dictionary called `name`, of a version that we know.
    [[nodiscard]] outcome read_dict(PyObject* dict, const char* name, const char* unknown_version,
                                    long& stated) noexcept {
        if (!PyDict_Check(dict)) return malformed(name, "it is not a dictionary");
        if (!read(dict, true)) return outcome::raised;
        stated = version && PyLong_Check(version.get()) ? PyLong_AsLong(version.get()) : 0;
        PyErr_Clear();
        if (stated == 2 || stated == 3) return outcome::taken;
        return refused("version", unknown_version, std::max(stated, 0L), 3);
    }
};

/// What an interface says, checked as far as it goes without looking at memory. Shape and strides (in
/// elements) are in the `acquired` it was read into.
struct interface_description {
    dtype type{};
    std::int32_t ndim = 0;
    void* address = nullptr;
    bool read_only = false;
    bool has_address = false;  ///< otherwise the data is behind a buffer
};

namespace detail {

/// The items of a tuple or list, without the iterator a subclass may bring.
[[nodiscard]] inline ref as_tuple(PyObject* value) noexcept {
    return ref::take(PyList_Check(value) ? call::list_items(value)
                                         : PyTuple_GetSlice(value, 0, PyTuple_GET_SIZE(value)));
}

/// A tuple or list of integers.
[[nodiscard]] inline outcome read_integers(PyObject* value, const char* field, std::int64_t* out,
                                           std::int32_t& count) noexcept {
    if (!PyTuple_Check(value) && !PyList_Check(value)) return field_failed(field, "it is not a tuple");
    const ref items = as_tuple(value);
    if (!items) return outcome::raised;
    const Py_ssize_t n = PyTuple_GET_SIZE(items.get());
    if (n > max_rank) return refused(field, "too many axes", n, max_rank);
    for (Py_ssize_t i = 0; i < n; ++i) {
        const ref number = ref::take(call::index(PyTuple_GET_ITEM(items.get(), i)));
        out[i] = number ? PyLong_AsLongLong(number.get()) : -1;
        if (PyErr_Occurred() != nullptr) return field_failed(field, "an item is not an integer of 64 bits");
    }
    count = static_cast<std::int32_t>(n);
    return outcome::taken;
}

/// The address in a `(address, read_only)` pair: an integer, or a hexadecimal string in interfaces of
/// version 2.
[[nodiscard]] inline outcome read_address(PyObject* pair, interface_description& out) noexcept {
    const ref items = as_tuple(pair);
    if (!items) return outcome::raised;
    if (PyTuple_GET_SIZE(items.get()) != 2)
        return field_failed("data", "it is not a pair of address and flag");
    PyObject* const address = PyTuple_GET_ITEM(items.get(), 0);
    ref number;
    if (PyUnicode_Check(address)) {
        number = ref::take(PyLong_FromUnicodeObject(address, 16));
        if (!number && PyErr_ExceptionMatches(PyExc_ValueError) != 0) PyErr_Clear();
    } else if (PyLong_Check(address) && !PyBool_Check(address)) {
        number = ref::borrow(address);
    }
    if (!number) return field_failed("data", "the address is not an integer");
    const unsigned long long value = PyLong_AsUnsignedLongLong(number.get());
    if (PyErr_Occurred() != nullptr) return field_failed("data", "the address is not one of this machine");
    const int read_only = call::is_true(PyTuple_GET_ITEM(items.get(), 1));
    if (read_only < 0) return outcome::raised;
    out.address = reinterpret_cast<void*>(static_cast<std::uintptr_t>(value));
    out.read_only = read_only != 0;
    out.has_address = true;
    return outcome::taken;
}

/// NumPy describes every plain type as one unnamed field; more, or a name, is a structure.
[[nodiscard]] inline bool is_structured(PyObject* descr) noexcept {
    if (!PyList_Check(descr)) return true;
    if (PyList_GET_SIZE(descr) == 0) return false;
    PyObject* const only = PyList_GET_ITEM(descr, 0);
    if (PyList_GET_SIZE(descr) != 1 || !PyTuple_Check(only) || PyTuple_GET_SIZE(only) != 2) return true;
    PyObject* const name = PyTuple_GET_ITEM(only, 0);
    return !PyUnicode_Check(name) || PyUnicode_GetLength(name) != 0 ||
           !PyUnicode_Check(PyTuple_GET_ITEM(only, 1));
}

}  // namespace detail

/// Reads the fields both interfaces have into `out.storage` and `said`.
[[nodiscard]] inline outcome read_interface(const interface_fields& fields, acquired& out,
                                            interface_description& said) noexcept {
    if (!fields.shape) return malformed("shape", "it is missing");
    if (!fields.typestr || !PyUnicode_Check(fields.typestr.get()))
        return malformed("typestr", "it is missing or not a string");
    if (fields.mask)
        return refused("mask", "masked arrays cannot be expressed").with_advice("fill them first");

    Py_ssize_t size = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(fields.typestr.get(), &size);
    if (text == nullptr) {
        PyErr_Clear();
        return malformed("typestr", "it is not text");
    }
    const parsed_format parsed = dtype_from_typestr({text, static_cast<std::size_t>(size)});
    if (parsed.fault != format_fault::none) return format_error("typestr", parsed.fault);
    said.type = parsed.type;
    if (fields.descr && detail::is_structured(fields.descr.get()))
        return refused("descr", "structured elements cannot be expressed")
            .with_advice("pass one field of it");

    if (const outcome r = detail::read_integers(fields.shape.get(), "shape", out.storage, said.ndim);
        r != outcome::taken)
        return r;
    const auto n = static_cast<std::size_t>(said.ndim);
    if (fields.strides) {
        std::int64_t bytes[max_rank];
        std::int32_t count = 0;
        if (const outcome r = detail::read_integers(fields.strides.get(), "strides", bytes, count);
            r != outcome::taken)
            return r;
        if (count != said.ndim) return malformed("strides", "there is not one for each axis", count);
        const element_steps steps(said.type.itemsize());
        const bool empty = std::find(out.storage, out.storage + n, 0) != out.storage + n;
        for (std::size_t i = 0; i < n; ++i) {
            if (!steps.are_whole(bytes[i]) && out.storage[i] > 1 && !empty)
                return broken_step({out.storage, n}, bytes, said.type.itemsize());
            out.storage[n + i] = steps.count(bytes[i]);
        }
    } else {
        fill_row_major({out.storage, n}, out.storage + n);
    }
    if (fields.data && (PyTuple_Check(fields.data.get()) || PyList_Check(fields.data.get())))
        return detail::read_address(fields.data.get(), said);
    return outcome::taken;
}

/// Describes memory at the address that was said, and keeps the object and what its interface was read from,
/// since either may own it (F71).
[[nodiscard]] inline outcome keep_described(attempt& a, const interface_description& said, device where,
                                            PyObject* interface) noexcept {
    const std::uint64_t flags = said.read_only || a.plan.immutable ? abi::flag::read_only : 0;
    if (auto ok = a.out.admit_stored({without_axes(said.address, said.ndim, said.type, where), flags}); !ok)
        return ok;
    a.out.owner = detail::keep_interface(a.obj, interface, &a.here);
    return a.out.owner ? outcome::taken : outcome::raised;
}

}  // namespace tenon::py
