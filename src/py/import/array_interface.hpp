// src/py/import/array_interface.hpp: the rung for `__array_interface__` version 3 and the attributes of
// version 2.
#pragma once

#include "interface.hpp"

namespace tenon::py::array_interface {

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
                                              const interface_description& said) noexcept {
    Py_buffer* held = nullptr;
    const outcome got = hold_buffer(source, PyBUF_SIMPLE, a.here, a.out, held);
    if (got != outcome::taken) return got;
    if (offset < 0 || held->len < 0 || offset > held->len)
        return a.give_up(malformed("offset", "it lies outside the buffer", offset));
    if (held->buf == nullptr && held->len != 0)
        return a.give_up(malformed("data", "the buffer's address is null"));
    void* const first = held->buf != nullptr ? static_cast<char*>(held->buf) + offset : nullptr;
    const std::uint64_t flags = held->readonly != 0 || a.plan.immutable ? abi::flag::read_only : 0;
    if (auto ok = a.out.admit_stored({without_axes(first, said.ndim, said.type), flags}); !ok)
        return a.give_up(ok.error());
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
    long version = 0;
    if (dict)
        return fields.read_dict(dict.get(), "__array_interface__",
                                "only versions 2 and 3 of the array interface are known", version);
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
    if (const outcome r = read_interface(fields, a.out, said); r != outcome::taken) return r;
    if (said.has_address) return keep_described(a, said, device{}, dict ? dict.get() : a.obj);

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
