// tenon/py/current_stream.hpp: the stream that an array's library is working on, to launch work on as well.
#pragma once

#include <cstdint>

#include <tenon/abi/dlpack.hpp>
#include <tenon/core/device.hpp>
#include <tenon/core/foreign_code.hpp>
#include <tenon/core/until_done.hpp>
#include <tenon/py/acquired.hpp>
#include <tenon/py/call.hpp>
#include <tenon/py/frameworks.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/py/type_plan.hpp>

namespace tenon::py {

/// The C function of a library that says which stream it works on, or null: Cython publishes functions as
/// capsules that are named by their signature.
[[nodiscard]] inline library_stream find_library_stream(const framework_habits& habits) noexcept {
    if (habits.stream_module == nullptr) return nullptr;
    const ref name = ref::take(PyUnicode_FromString(habits.stream_module));
    const ref module = name ? ref::take(PyImport_GetModule(name.get())) : ref();
    const ref functions = module ? ref::take(call::attr(module.get(), "__pyx_capi__")) : ref();
    PyObject* const capsule = functions && PyDict_CheckExact(functions.get())
                                  ? PyDict_GetItemString(functions.get(), habits.stream_function)
                                  : nullptr;
    static constexpr const char signature[] = "intptr_t (int)";
    void* const found = capsule != nullptr && PyCapsule_IsValid(capsule, signature) != 0
                            ? PyCapsule_GetPointer(capsule, signature)
                            : nullptr;
    PyErr_Clear();
    return reinterpret_cast<library_stream>(found);
}

namespace detail {

TENON_COLD inline bool stream_unknown() noexcept {
    if (PyErr_Occurred() == nullptr)
        raise(refused("stream", "the library does not say which stream it works on"), "tenon: ");
    return false;
}

}  // namespace detail

/// Asks a library's exchange table for the stream it works on, and notes it; false with an exception set when
/// it fails. Memory without streams has none.
[[nodiscard]] inline bool note_current_stream(const abi::exchange_api& table, acquired& got) noexcept try {
    const device where = got.device();
    if (!where.has_streams() || table.current_work_stream == nullptr) return true;
    void* stream = nullptr;
    if (!foreign_code([&] { return table.current_work_stream(where.type, where.id, &stream) == 0; }))
        return detail::stream_unknown();
    got.set_stream(stream);
    return true;
} catch (...) {
    raise_caught();
    return false;
}

/// The same of a library's own function.
[[nodiscard]] inline bool note_current_stream(library_stream ask, acquired& got) noexcept try {
    const std::intptr_t stream = foreign_code([&] { return ask(got.device().id); });
    if (PyErr_Occurred() != nullptr) return false;
    got.set_stream(reinterpret_cast<void*>(stream));
    return true;
} catch (...) {
    raise_caught();
    return false;
}

}  // namespace tenon::py
