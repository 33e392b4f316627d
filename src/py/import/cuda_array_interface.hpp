// src/py/import/cuda_array_interface.hpp: the rung for `__cuda_array_interface__` versions 2 and 3: its
// memory on the device it is truly on, its stream honoured.
#pragma once

#include "array_interface.hpp"
#include "placing.hpp"

namespace tenon::py::cuda_array_interface {

/// The stream that version 3 of the interface names: null when it names none.
[[nodiscard]] inline result<void*> stated_stream(const array_interface::interface_fields& fields) noexcept {
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
    const device where = out.device();
    if (options.orders()) {
        if (auto ok = check_stream_number(where, options.stream); !ok) return ok;
        out.set_stream(options.stream_handle());
    } else if (version == 3) {
        out.set_stream(producer);
    }
    if (version == 3 && (!options.orders() || producer == nullptr)) return {};
    return detail::without_gil([&] {
        if (version == 3) return gpu::order(where, producer, out.stream());
        return where.is_cuda() ? gpu::finish_device(where) : gpu::finish_all_devices(where);
    });
}

/// Reads the interface, asks the driver which device the memory is on, and orders the work.
[[nodiscard]] inline outcome take(attempt& a) noexcept {
    if (a.plan.cuda_array_interface == attribute_place::nowhere) return outcome::absent;
    ref dict;
    if (!read_attribute(a.obj, a.here.cuda_array_interface, dict)) return outcome::raised;
    if (!dict) return outcome::absent;
    array_interface::interface_fields fields;
    if (const outcome r = fields.read_dict(dict.get(), "__cuda_array_interface__"); r != outcome::taken)
        return r;

    array_interface::interface_description said;
    if (const outcome r = array_interface::read_interface(a, fields, said); r != outcome::taken) return r;
    if (!said.has_address) return malformed("data", "it is missing or not a pair of address and flag");
    const auto stream = stated_stream(fields);
    if (!stream) return stream.error();
    said.tensor.device = {abi::device_code::cuda, 0};
    if (const outcome r = array_interface::keep_described(a, said, dict.get()); r != outcome::taken) return r;
    const auto where = true_device(a.out, a.options);
    if (!where) return a.give_up(where.error());
    a.out.set_device(*where);
    if (a.options.stream == -1 || a.out.looking || a.out.empty()) return outcome::taken;
    // From here on code of others may run: the GIL is let go of.
    if (auto ordered = order(fields.stated_version, *stream, a.options, a.out); !ordered)
        return a.give_up(ordered.error());
    // The producer does not wait for the consumer's stream, or does not say which one is its own: it gets its
    // memory back when that is done.
    if (*stream == nullptr || !gpu::is_same_stream(*where, *stream, a.out.stream()))
        a.out.owner = gpu::released_late(std::move(a.out.owner), *where);
    return outcome::taken;
}

}  // namespace tenon::py::cuda_array_interface
