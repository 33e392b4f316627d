// src/py/import/array_interface.hpp: the rung for `__array_interface__` version 3 and the attributes of
// version 2.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/py/acquired.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/ref.hpp>
#include "../runtime/call.hpp"
#include "../runtime/interpreter.hpp"
#include "../runtime/keep.hpp"
#include "interface.hpp"
#include "rung.hpp"
#include "type_plan.hpp"

namespace tenon::py::array_interface {

inline void probe(PyTypeObject* type, const interpreter& names, type_plan& plan) noexcept {
    plan.array_interface = place_of(type, names.array_interface);
    plan.array_typestr = place_of(type, names.array_typestr);
}

namespace detail {

/// Version 2 had no dictionary: each field is an attribute of its own, `__array_shape__` and so on.
[[nodiscard]] inline rung_result read_attributes(PyObject* obj, interface_fields& fields) noexcept {
    for (const interface_fields::named& n : interface_fields::all) {
        const ref name = ref::take(PyUnicode_FromFormat("__array_%s__", n.key));
        if (!name) return rung_result::raised;
        PyObject* found = nullptr;
        if (call::optional_attr(obj, name.get(), &found) < 0) return rung_result::raised;
        ref value = ref::take(found);
        if (value && value.get() != Py_None) fields.*n.field = std::move(value);
    }
    return fields.typestr && fields.shape ? rung_result::taken : rung_result::absent;
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
[[nodiscard]] inline rung_result take_from_buffer(PyObject* source, std::int64_t offset, bool immutable,
                                                  const interface_description& said, interpreter& here,
                                                  acquired& out, error& why) noexcept {
    Py_buffer* held = nullptr;
    if (const auto got = hold_buffer(source, PyBUF_SIMPLE, here, out, held, why); got != rung_result::taken)
        return got;
    const auto give_up = [&](const error& e) {
        why = e;
        out.owner.reset();
        return rung_result::refused;
    };
    if (offset < 0 || held->len < 0 || offset > held->len)
        return give_up(malformed("offset", "it lies outside the buffer", offset));
    if (held->buf == nullptr && held->len != 0)
        return give_up(malformed("data", "the buffer's address is null"));
    const abi::dl_tensor t{held->buf != nullptr ? static_cast<char*>(held->buf) + offset : nullptr,
                           {abi::device_code::cpu, 0},
                           said.ndim,
                           said.type.to_abi(),
                           nullptr,
                           nullptr,
                           0};
    const std::uint64_t flags = held->readonly != 0 || immutable ? abi::flag::read_only : 0;
    if (auto ok = out.admit_stored(t, flags); !ok) return give_up(ok.error());
    if (out.empty()) return rung_result::taken;
    // Validated: these products fit. Nothing is added to them, since a sum might not.
    const element_span span = touched_span(out.shape(), out.strides()).value_or(element_span{});
    const std::int64_t low = span.low * out.itemsize();
    const std::int64_t end = (span.high + 1) * out.itemsize();
    if (low < -offset || end > held->len - offset)
        return give_up(malformed("shape", "elements lie outside the buffer (bytes needed)", end));
    return rung_result::taken;
}

}  // namespace detail

/// Reads the interface; the object and the dictionary are both kept, since either may own the memory (F71).
[[nodiscard]] inline rung_result take(PyObject* obj, const type_plan& plan, interpreter& here, acquired& out,
                                      error& why) noexcept {
    interface_fields fields;
    ref dict;
    if (plan.array_interface != attribute_place::nowhere) {
        PyObject* found = nullptr;
        if (call::optional_attr(obj, here.array_interface, &found) < 0) return rung_result::raised;
        dict = ref::take(found);
    }
    const bool has_dict = dict && dict.get() != Py_None;
    if (has_dict) {
        if (!PyDict_Check(dict.get())) {
            why = malformed("__array_interface__", "it is not a dictionary");
            return rung_result::refused;
        }
        if (!fields.read(dict.get())) return rung_result::raised;
        if (const long version = interface_version(fields); version != 3 && version != 2) {
            why = refused("version", "only versions 2 and 3 of the array interface are known", version, 3);
            return rung_result::refused;
        }
    } else {
        if (plan.array_typestr == attribute_place::nowhere) return rung_result::absent;
        if (const auto r = detail::read_attributes(obj, fields); r != rung_result::taken) return r;
    }

    interface_description said;
    if (const auto r = read_interface(fields, out, said, why); r != rung_result::taken) return r;
    if (!said.has_address) {
        std::int64_t offset = 0;
        if (fields.offset) {
            const ref number = ref::take(call::index(fields.offset.get()));
            offset = number ? PyLong_AsLongLong(number.get()) : -1;
            if (PyErr_Occurred() != nullptr)
                return py::detail::field_failed("offset", "it is not an integer", why);
        }
        PyObject* const source = fields.data ? fields.data.get() : obj;
        if (PyObject_CheckBuffer(source) == 0) {
            why = malformed("data", "there is neither an address nor a buffer");
            return rung_result::refused;
        }
        const bool fresh = fields.data && detail::is_fresh(source, has_dict ? dict.get() : nullptr);
        const auto got = detail::take_from_buffer(source, offset, plan.immutable, said, here, out, why);
        if (got == rung_result::taken && fresh && !out.empty()) out.mark_copied();
        return got;
    }

    const abi::dl_tensor t{
        said.address, {abi::device_code::cpu, 0}, said.ndim, said.type.to_abi(), nullptr, nullptr, 0};
    const std::uint64_t flags = said.read_only || plan.immutable ? abi::flag::read_only : 0;
    if (auto ok = out.admit_stored(t, flags); !ok) {
        why = ok.error();
        return rung_result::refused;
    }
    out.owner = py::detail::keep_interface(obj, dict ? dict.get() : obj, &here);
    if (!out.owner) return rung_result::raised;
    return rung_result::taken;
}

}  // namespace tenon::py::array_interface
