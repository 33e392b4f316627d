// tenon/py/import/cuda_array_interface.hpp: the rung for `__cuda_array_interface__` versions 2 and 3
// (metadata only).
#pragma once

#include <cstdint>

#include <tenon/py/acquired.hpp>
#include <tenon/py/call.hpp>
#include <tenon/py/interface.hpp>
#include <tenon/py/interpreter.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/py/type_plan.hpp>

namespace tenon::py::cuda_array_interface {

inline void probe(PyTypeObject* type, const interpreter& names, type_plan& plan) noexcept {
    plan.cuda_array_interface = place_of(type, names.cuda_array_interface);
}

/// Reads the interface. It does not name its device: the one the caller asked for is assumed, else device 0,
/// and nothing is synchronised here.
[[nodiscard]] inline rung_result take(PyObject* obj, const type_plan plan, const import_options& options,
                                      interpreter& here, acquired& out, error& why) noexcept {
    if (plan.cuda_array_interface == attribute_place::nowhere) return rung_result::absent;
    PyObject* found = nullptr;
    if (call::optional_attr(obj, here.cuda_array_interface, &found) < 0) return rung_result::raised;
    const ref dict = ref::take(found);
    if (!dict || dict.get() == Py_None) return rung_result::absent;
    const auto refuse = [&](const error& e) {
        why = e;
        return rung_result::refused;
    };
    if (!PyDict_Check(dict.get()))
        return refuse(malformed("__cuda_array_interface__", "it is not a dictionary"));
    interface_fields fields;
    if (!fields.read(dict.get())) return rung_result::raised;
    const long version = interface_version(fields);
    if (version != 2 && version != 3)
        return refuse(
            refused("version", "only versions 2 and 3 of the CUDA array interface are known", version, 3));

    interface_description said;
    if (const auto r = read_interface(fields, out, said, why); r != rung_result::taken) return r;
    if (!said.has_address)
        return refuse(malformed("data", "it is missing or not a pair of address and flag"));
    if (fields.stream) {
        const bool is_number = PyLong_Check(fields.stream.get()) && !PyBool_Check(fields.stream.get());
        const long long number = is_number ? PyLong_AsLongLong(fields.stream.get()) : -1;
        if (PyErr_Occurred() != nullptr || !is_number || number <= 0) {
            PyErr_Clear();
            return refuse(malformed("stream", "it is neither 1, 2 nor a stream handle", number));
        }
    }
    if (options.to && !options.to->is_cuda())
        return refuse(
            refused("device", "the data is on a CUDA device", abi::device_code::cuda, options.to->type));
    const device where = options.to ? *options.to : device{abi::device_code::cuda, 0};
    const abi::dl_tensor t{said.address, where.to_abi(), said.ndim, said.type.to_abi(), nullptr, nullptr, 0};
    const std::uint64_t flags = said.read_only || plan.immutable ? abi::flag::read_only : 0;
    if (auto ok = out.admit_stored(t, flags, options.policy()); !ok) return refuse(ok.error());
    const ref both = ref::take(PyTuple_Pack(2, obj, dict.get()));
    if (!both) return rung_result::raised;
    out.owner = py::detail::keep_object(both.get(), &here);
    return rung_result::taken;
}

}  // namespace tenon::py::cuda_array_interface
