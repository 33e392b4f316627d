// tenon/py/current_stream.hpp: the stream that an argument's library is working on, to launch work on as
// well.
#pragma once

#include <cstdint>

#include <tenon/abi/dlpack.hpp>
#include <tenon/core/device.hpp>
#include <tenon/py/call.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/py/type_plan.hpp>

namespace tenon::py {

/// The stream on which what `obj` holds has been, or will be, written: the current one of its library where
/// that can be asked (the exchange table), else the default stream, for which an import without a table made
/// the producer's work wait. Host memory has none. False with an exception set when the library fails.
[[nodiscard]] inline bool current_stream(PyObject* obj, device where, void*& out) noexcept try {
    out = nullptr;
    if (!where.has_streams()) return true;
    const type_plan* const plan = find_plan(Py_TYPE(obj));
    if (plan == nullptr || plan->table == nullptr || plan->table->current_work_stream == nullptr) {
        if (where.is_cuda()) out = reinterpret_cast<void*>(std::uintptr_t{1});  // cudaStreamLegacy
        return true;
    }
    const auto ask = plan->table->current_work_stream;
    if (foreign_code([&] { return ask(where.type, where.id, &out) == 0; })) return true;
    if (PyErr_Occurred() == nullptr)
        raise(refused("stream", "the library does not say which stream it works on"), "tenon: ");
    return false;
} catch (...) {
    raise_caught();
    return false;
}

}  // namespace tenon::py
