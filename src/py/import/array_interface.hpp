// src/py/import/array_interface.hpp: the rung for `__array_interface__` version 3 and the attributes of
// version 2.
#pragma once

#include "../library/all.hpp"
#include "attempt.hpp"
#include "interface.hpp"

namespace tenon::py::array_interface {

inline void probe(PyTypeObject* type, const interpreter& names, type_plan& plan) noexcept {
    plan.array_interface = place_of(type, names.array_interface);
    plan.array_typestr = place_of(type, names.array_typestr);
}

namespace detail {

/// Version 2 had no dictionary: each field is an attribute of its own, `__array_shape__` and so on.
[[nodiscard]] inline outcome read_attributes(PyObject* obj, interface_fields& fields) noexcept {
    for (const interface_fields::named& n : interface_fields::all) {
        const ref name = ref::take(PyUnicode_FromFormat("__array_%s__", n.key));
        if (!name) return outcome::raised;
        PyObject* found = nullptr;
        if (call::optional_attr(obj, name.get(), &found) < 0) return outcome::raised;
        ref value = ref::take(found);
        if (value && value.get() != Py_None) fields.*n.field = std::move(value);
    }
    return fields.typestr && fields.shape ? outcome::taken : outcome::absent;
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
                                              const interface_description& said) noexcept {
    Py_buffer* held = nullptr;
    const outcome got = hold_buffer(source, PyBUF_SIMPLE, a.here, a.out, held);
    if (!(got == outcome::taken)) return got;
    if (offset < 0 || held->len < 0 || offset > held->len)
        return a.give_up(malformed("offset", "it lies outside the buffer", offset));
    if (held->buf == nullptr && held->len != 0)
        return a.give_up(malformed("data", "the buffer's address is null"));
    const abi::dl_tensor t{held->buf != nullptr ? static_cast<char*>(held->buf) + offset : nullptr,
                           {abi::device_code::cpu, 0},
                           said.ndim,
                           said.type.to_abi(),
                           nullptr,
                           nullptr,
                           0};
    const std::uint64_t flags = held->readonly != 0 || a.plan.immutable ? abi::flag::read_only : 0;
    if (auto ok = a.out.admit_stored(t, flags); !ok) return a.give_up(ok.error());
    if (a.out.empty()) return outcome::taken;
    // Validated: these products fit. Nothing is added to them, since a sum might not.
    const element_span span = touched_span(a.out.shape(), a.out.strides()).value_or(element_span{});
    const std::int64_t low = span.low * a.out.itemsize();
    const std::int64_t end = (span.high + 1) * a.out.itemsize();
    if (low < -offset || end > held->len - offset)
        return a.give_up(malformed("shape", "elements lie outside the buffer (bytes needed)", end));
    return outcome::taken;
}

}  // namespace detail

namespace detail {

/// The fields, from the dictionary, which is left in `dict`, or from the attributes that came before it.
[[nodiscard]] inline outcome read_fields(attempt& a, interface_fields& fields, ref& dict) noexcept {
    if (a.plan.array_interface != attribute_place::nowhere) {
        PyObject* found = nullptr;
        if (call::optional_attr(a.obj, a.here.array_interface, &found) < 0) return outcome::raised;
        dict = ref::take(found);
        if (dict.get() == Py_None) dict = ref();
    }
    if (!dict)
        return a.plan.array_typestr == attribute_place::nowhere ? outcome::absent
                                                                : read_attributes(a.obj, fields);
    if (!PyDict_Check(dict.get())) return malformed("__array_interface__", "it is not a dictionary");
    if (!fields.read(dict.get())) return outcome::raised;
    const long version = interface_version(fields);
    if (version != 3 && version != 2)
        return refused("version", "only versions 2 and 3 of the array interface are known", version, 3);
    return outcome::taken;
}

}  // namespace detail

/// Reads the interface; the object and the dictionary are both kept, since either may own the memory (F71).
[[nodiscard]] inline outcome take(attempt& a) noexcept {
    interface_fields fields;
    ref dict;
    if (const outcome r = detail::read_fields(a, fields, dict); !(r == outcome::taken)) return r;
    interface_description said;
    if (const outcome r = read_interface(fields, a.out, said); !(r == outcome::taken)) return r;
    if (!said.has_address) {
        std::int64_t offset = 0;
        if (fields.offset) {
            const ref number = ref::take(call::index(fields.offset.get()));
            offset = number ? PyLong_AsLongLong(number.get()) : -1;
            if (PyErr_Occurred() != nullptr)
                return py::detail::field_failed("offset", "it is not an integer");
        }
        PyObject* const source = fields.data ? fields.data.get() : a.obj;
        if (PyObject_CheckBuffer(source) == 0)
            return malformed("data", "there is neither an address nor a buffer");
        const bool fresh = fields.data && detail::is_fresh(source, dict.get());
        const outcome got = detail::take_from_buffer(a, source, offset, said);
        if (got == outcome::taken && fresh && !a.out.empty()) a.out.mark_copied();
        return got;
    }

    const abi::dl_tensor t{
        said.address, {abi::device_code::cpu, 0}, said.ndim, said.type.to_abi(), nullptr, nullptr, 0};
    const std::uint64_t flags = said.read_only || a.plan.immutable ? abi::flag::read_only : 0;
    if (auto ok = a.out.admit_stored(t, flags); !ok) return ok;
    a.out.owner = py::detail::keep_interface(a.obj, dict ? dict.get() : a.obj, &a.here);
    return a.out.owner ? outcome::taken : outcome::raised;
}

}  // namespace tenon::py::array_interface
