// src/py/import/array_interface.hpp: the rung for `__array_interface__` version 3 and the attributes of
// version 2. And what it shares with `__cuda_array_interface__`: reading the mapping, field by field.
#pragma once

#include "buffer.hpp"

namespace tenon::py::array_interface {

/// The fields of an array interface, each an owned reference or nothing. Taken out before any is read,
/// because reading one may run code that changes the mapping.
struct interface_fields {
    ref version, shape, typestr, data, strides, offset, mask, descr, stream;

    /// From the dictionary, or from attributes of the object (`__array_shape__` and so on). False with an
    /// exception set when a lookup raised; None counts as not given.
    [[nodiscard]] bool read(PyObject* source, bool is_dict) noexcept {
        const std::pair<ref&, const char*> all[] = {
            {version, "version"}, {shape, "shape"},     {typestr, "typestr"},
            {data, "data"},       {strides, "strides"}, {offset, "offset"},
            {mask, "mask"},       {descr, "descr"},     {stream, "stream"}};
        for (const auto& [field, name] : all) {
            const ref key = ref::take(PyUnicode_FromFormat(is_dict ? "%s" : "__array_%s__", name));
            if (!key) return false;
            PyObject* found = nullptr;
            const int there = is_dict ? call::dict_item(source, key.get(), &found)
                                      : call::optional_attr(source, key.get(), &found);
            if (there < 0) return false;
            ref value = ref::take(found);
            if (value && value.get() != Py_None) field = std::move(value);
        }
        return true;
    }
    /// From what must be a dictionary called `name`, of a version that we know.
    [[nodiscard]] outcome read_dict(PyObject* dict, const char* name) noexcept {
        if (!PyDict_Check(dict)) return malformed(name, "it is not a dictionary");
        if (!read(dict, true)) return outcome::raised;
        if (version && PyLong_Check(version.get())) stated_version = PyLong_AsLong(version.get());
        PyErr_Clear();
        if (stated_version == 2 || stated_version == 3) return outcome::taken;
        return refused("version", "only versions 2 and 3 of this interface are known",
                       std::max(stated_version, 0L), 3);
    }

    long stated_version = 0;
};

/// What an interface says, checked as far as it goes without looking at memory. Shape and strides (in
/// elements) are in the `acquired` it was read into.
struct interface_description {
    abi::dl_tensor tensor{};
    std::uint64_t flags = 0;
    bool has_address = false;  ///< otherwise the data is behind a buffer
};

/// The items of a tuple or list, without the iterator a subclass may bring.
[[nodiscard]] inline ref as_tuple(PyObject* value) noexcept {
    return ref::take(PyList_Check(value) ? call::list_items(value)
                                         : PyTuple_GetSlice(value, 0, PyTuple_GET_SIZE(value)));
}

/// A tuple or list of integers.
[[nodiscard]] inline outcome read_integers(PyObject* value, const char* field, std::int64_t* out,
                                           std::int32_t& count) noexcept {
    if (!PyTuple_Check(value) && !PyList_Check(value))
        return detail::field_failed(field, "it is not a tuple");
    const ref items = as_tuple(value);
    if (!items) return outcome::raised;
    const Py_ssize_t n = PyTuple_GET_SIZE(items.get());
    if (n > max_rank) return refused(field, "too many axes", n, max_rank);
    for (Py_ssize_t i = 0; i < n; ++i) {
        const ref number = ref::take(call::index(PyTuple_GET_ITEM(items.get(), i)));
        out[i] = number ? PyLong_AsLongLong(number.get()) : -1;
        if (PyErr_Occurred() != nullptr)
            return detail::field_failed(field, "an item is not an integer of 64 bits");
    }
    count = static_cast<std::int32_t>(n);
    return outcome::taken;
}

/// The address in `(address, read_only)`: an integer, or in interfaces of version 2 a hexadecimal string.
[[nodiscard]] inline outcome read_address(PyObject* pair, interface_description& out) noexcept {
    const ref items = as_tuple(pair);
    if (!items) return outcome::raised;
    if (PyTuple_GET_SIZE(items.get()) != 2)
        return detail::field_failed("data", "it is not a pair of address and flag");
    PyObject* const address = PyTuple_GET_ITEM(items.get(), 0);
    ref number;
    if (PyUnicode_Check(address)) {
        number = ref::take(PyLong_FromUnicodeObject(address, 16));
        if (!number && PyErr_ExceptionMatches(PyExc_ValueError) != 0) PyErr_Clear();
    } else if (PyLong_Check(address) && !PyBool_Check(address)) {
        number = ref::borrow(address);
    }
    if (!number) return detail::field_failed("data", "the address is not an integer");
    const unsigned long long value = PyLong_AsUnsignedLongLong(number.get());
    if (PyErr_Occurred() != nullptr)
        return detail::field_failed("data", "the address is not one of this machine");
    const int read_only = call::is_true(PyTuple_GET_ITEM(items.get(), 1));
    if (read_only < 0) return outcome::raised;
    out.tensor.data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(value));
    if (read_only != 0) out.flags |= abi::flag::read_only;
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

/// Reads the fields both interfaces have into `a.out.storage` and `said`.
[[nodiscard]] inline outcome read_interface(attempt& a, const interface_fields& fields,
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
    if (fields.descr && is_structured(fields.descr.get()))
        return refused("descr", "structured elements cannot be expressed")
            .with_advice("pass one field of it");

    std::int64_t* const shape = a.out.storage;
    std::int32_t rank = 0;
    if (const outcome r = read_integers(fields.shape.get(), "shape", shape, rank); r != outcome::taken)
        return r;
    said.tensor = without_axes(nullptr, rank, parsed.type);
    if (a.plan.immutable) said.flags = abi::flag::read_only;
    const auto n = static_cast<std::size_t>(rank);
    if (fields.strides) {
        std::int64_t bytes[max_rank];
        std::int32_t count = 0;
        if (const outcome r = read_integers(fields.strides.get(), "strides", bytes, count);
            r != outcome::taken)
            return r;
        if (count != rank) return malformed("strides", "there is not one for each axis", count);
        if (auto ok = check_steps({shape, n}, bytes, parsed.type.itemsize()); !ok) return ok;
        const int shift = step_shift(parsed.type.itemsize());
        for (std::size_t i = 0; i < n; ++i) shape[n + i] = bytes[i] >> shift;
    } else {
        fill_row_major({shape, n}, shape + n);
    }
    if (fields.data && (PyTuple_Check(fields.data.get()) || PyList_Check(fields.data.get())))
        return read_address(fields.data.get(), said);
    return outcome::taken;
}

/// Describes memory at the address that was said, and keeps the object and what its interface was read from,
/// since either may own it (F71).
[[nodiscard]] inline outcome keep_described(attempt& a, const interface_description& said,
                                            PyObject* interface) noexcept {
    if (auto ok = a.out.admit_stored({said.tensor, said.flags}); !ok) return ok;
    a.out.owner = detail::keep_interface(a.obj, interface, &a.here);
    return a.out.owner ? outcome::taken : outcome::raised;
}

/// Whether the bytes were made for this look, and are a copy then: nobody holds them but us and the
/// dictionary (null if there is none), and nobody holds that but us. A view made anew proves nothing: what it
/// is of may stay. Of objects that are no bytes it is not known whose memory they show.
[[nodiscard]] inline bool is_fresh(PyObject* data, PyObject* dict) noexcept {
    if (dict != nullptr && Py_REFCNT(dict) != 1) return false;
    Py_ssize_t holders = dict != nullptr ? 2 : 1;
    if (PyMemoryView_Check(data)) {
        if (Py_REFCNT(data) != holders) return false;
        data = PyMemoryView_GET_BASE(data);
        holders = 1;
    }
    if (data == nullptr) return false;
    // Python itself has every string of one byte, once.
    if (PyBytes_CheckExact(data)) return Py_REFCNT(data) == holders || PyBytes_GET_SIZE(data) == 1;
    return PyByteArray_CheckExact(data) && Py_REFCNT(data) == holders;
}

/// Holds the buffer that stands behind the description, and checks that no element lies outside it.
[[nodiscard]] inline outcome take_from_buffer(attempt& a, PyObject* source, std::int64_t offset,
                                              interface_description& said) noexcept {
    Py_buffer* held = nullptr;
    const outcome got = hold_buffer(source, PyBUF_SIMPLE, a.here, a.out, held);
    if (got != outcome::taken) return got;
    if (offset < 0 || held->len < 0 || offset > held->len)
        return a.give_up(malformed("offset", "it lies outside the buffer", offset));
    if (held->buf == nullptr && held->len != 0)
        return a.give_up(malformed("data", "the buffer's address is null"));
    if (held->buf != nullptr) said.tensor.data = static_cast<char*>(held->buf) + offset;
    if (held->readonly != 0) said.flags |= abi::flag::read_only;
    if (auto ok = a.out.admit_stored({said.tensor, said.flags}); !ok) return a.give_up(ok.error());
    if (a.out.empty()) return outcome::taken;
    // Validated: these products fit. Nothing is added to them, since a sum might not.
    const element_span span = touched_span(a.out.shape(), a.out.strides()).value_or(element_span{});
    const std::int64_t low = span.low * a.out.itemsize();
    const std::int64_t end = (span.high + 1) * a.out.itemsize();
    if (low < -offset || end > held->len - offset)
        return a.give_up(malformed("shape", "elements lie outside the buffer (bytes needed)", end));
    return outcome::taken;
}

/// The fields, from the dictionary, which is left in `dict`, or from the attributes that came before it.
[[nodiscard]] inline outcome read_fields(attempt& a, interface_fields& fields, ref& dict) noexcept {
    if (a.plan.array_interface != attribute_place::nowhere) {
        if (!read_attribute(a.obj, a.here.array_interface, dict)) return outcome::raised;
    }
    if (dict) return fields.read_dict(dict.get(), "__array_interface__");
    // Version 2 had no dictionary: each field is an attribute of its own.
    if (a.plan.array_typestr == attribute_place::nowhere) return outcome::absent;
    if (!fields.read(a.obj, false)) return outcome::raised;
    return fields.typestr && fields.shape ? outcome::taken : outcome::absent;
}

/// Reads the interface, of memory at an address or of a buffer.
[[nodiscard]] inline outcome take(attempt& a) noexcept {
    interface_fields fields;
    ref dict;
    if (const outcome r = read_fields(a, fields, dict); r != outcome::taken) return r;
    interface_description said;
    if (const outcome r = read_interface(a, fields, said); r != outcome::taken) return r;
    if (said.has_address) return keep_described(a, said, dict ? dict.get() : a.obj);

    std::int64_t offset = 0;
    if (fields.offset) {
        const ref number = ref::take(call::index(fields.offset.get()));
        offset = number ? PyLong_AsLongLong(number.get()) : -1;
        if (PyErr_Occurred() != nullptr) return detail::field_failed("offset", "it is not an integer");
    }
    PyObject* const source = fields.data ? fields.data.get() : a.obj;
    if (PyObject_CheckBuffer(source) == 0)
        return malformed("data", "there is neither an address nor a buffer");
    const bool fresh = fields.data && is_fresh(source, dict.get());
    const outcome got = take_from_buffer(a, source, offset, said);
    if (got == outcome::taken && fresh && !a.out.empty()) a.out.mark_copied();
    return got;
}

}  // namespace tenon::py::array_interface
