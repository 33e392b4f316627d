// src/py/import/cuda_array_interface.hpp: the rung for `__cuda_array_interface__` versions 2 and 3: its
// memory on the device it is truly on, its stream honoured.
#pragma once

#include <tenon/py/import.hpp>
#include "../library/all.hpp"
#include "attempt.hpp"
#include "interface.hpp"
#include "stream.hpp"

namespace tenon::py::cuda_array_interface {

inline void probe(PyTypeObject* type, const interpreter& names, type_plan& plan) noexcept {
    plan.cuda_array_interface = place_of(type, names.cuda_array_interface);
}

namespace detail {

/// The stream that version 3 of the interface names: null when it names none.
[[nodiscard]] inline result<void*> stated_stream(const interface_fields& fields) noexcept {
    if (!fields.stream) return static_cast<void*>(nullptr);
    const bool is_number = PyLong_Check(fields.stream.get()) && !PyBool_Check(fields.stream.get());
    const long long number = is_number ? PyLong_AsLongLong(fields.stream.get()) : -1;
    if (PyErr_Occurred() != nullptr || !is_number || number <= 0) {
        PyErr_Clear();
        return malformed("stream", "it is neither 1, 2 nor a stream handle", number);
    }
    void* const stream = reinterpret_cast<void*>(static_cast<std::intptr_t>(number));
    if (auto ok = gpu::check_stream(stream); !ok) return ok.error();
    return stream;
}

/// The interface does not name its device: the driver knows it by the address. Nothing at all lies nowhere.
[[nodiscard]] inline result<device> true_device(const acquired& got, const import_options& options) noexcept {
    if (!got.empty()) return gpu::device_of_address(got.data());
    return options.to && options.to->is_cuda() ? *options.to : gpu::current_device();
}

/// Sees to it that the consumer comes after the producer. Version 3 says where that works: the consumer's
/// stream waits for it, or the tensor says so too, and whoever reads it will wait. Version 2 says nothing,
/// and the work may be on any stream: everything queued on the device is waited for, unless told not to.
[[nodiscard]] inline result<void> order(long version, void* producer, const import_options& options,
                                        acquired& out) noexcept {
    if (options.stream == -1 || out.looking || out.empty()) return {};
    if (options.orders()) {
        if (auto ok = check_stream_number(out.device(), options.stream); !ok) return ok;
        out.set_stream(options.stream_handle());
    }
    if (version == 2) {
        return py::detail::without_gil([&] {
            return out.device().is_cuda() ? gpu::finish_device(out.device())
                                          : gpu::finish_all_devices(out.device());
        });
    }
    if (options.orders()) {
        if (producer == nullptr || producer == out.stream()) return {};
        return py::detail::without_gil([&] { return gpu::order(out.device(), producer, out.stream()); });
    }
    out.set_stream(producer);
    return {};
}

}  // namespace detail

/// Reads the interface, asks the driver which device the memory is on, and orders the work.
[[nodiscard]] inline outcome take(attempt& a) noexcept {
    if (a.plan.cuda_array_interface == attribute_place::nowhere) return outcome::absent;
    PyObject* found = nullptr;
    if (call::optional_attr(a.obj, a.here.cuda_array_interface, &found) < 0) return outcome::raised;
    const ref dict = ref::take(found);
    if (!dict || dict.get() == Py_None) return outcome::absent;
    if (!PyDict_Check(dict.get())) return malformed("__cuda_array_interface__", "it is not a dictionary");
    interface_fields fields;
    if (!fields.read(dict.get())) return outcome::raised;
    const long version = interface_version(fields);
    if (version != 2 && version != 3)
        return refused("version", "only versions 2 and 3 of the CUDA array interface are known", version, 3);

    interface_description said;
    if (const outcome r = read_interface(fields, a.out, said); !(r == outcome::taken)) return r;
    if (!said.has_address) return malformed("data", "it is missing or not a pair of address and flag");
    const auto stream = detail::stated_stream(fields);
    if (!stream) return stream.error();
    const device first{abi::device_code::cuda, 0};
    const abi::dl_tensor t{said.address, first.to_abi(), said.ndim, said.type.to_abi(), nullptr, nullptr, 0};
    const std::uint64_t flags = said.read_only || a.plan.immutable ? abi::flag::read_only : 0;
    if (auto ok = a.out.admit_stored(t, flags); !ok) return ok;
    const auto where = detail::true_device(a.out, a.options);
    if (!where) return where.error();
    a.out.set_device(*where);
    a.out.owner = py::detail::keep_interface(a.obj, dict.get(), &a.here);
    if (!a.out.owner) return outcome::raised;
    // From here on code of others may run: the GIL is let go of.
    if (auto ordered = detail::order(version, *stream, a.options, a.out); !ordered)
        return a.give_up(ordered.error());
    // The producer does not wait for the consumer's stream, or does not say which one is its own: it gets its
    // memory back when that is done.
    if (a.options.stream != -1 && !a.out.looking && !a.out.empty()) {
        a.out.owner = *stream == nullptr ? gpu::released_late(std::move(a.out.owner), a.out.device())
                                         : gpu::released_late(std::move(a.out.owner), a.out.device(), *stream,
                                                              a.out.stream());
    }
    return outcome::taken;
}

}  // namespace tenon::py::cuda_array_interface
