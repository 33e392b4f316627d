// src/py/export/exchange_table.hpp: the functions of an exchange table of ours that are the same for every
// class.
#pragma once

#include <tenon/py/export.hpp>
#include "../import/all.hpp"

namespace tenon::py::detail {

using set_error_fn = void (*)(void* context, const char* kind, const char* message);

/// Tells the caller of the allocator, which may not want to know; always -1.
TENON_COLD inline int report(const error& e, void* context, set_error_fn set_error) noexcept {
    if (set_error == nullptr) return -1;
    const char* const kind = e.code == errc::no_memory   ? "MemoryError"
                             : e.code == errc::malformed ? "ValueError"
                                                         : "BufferError";
    try {
        const std::string text = "tenon: " + e.message();
        set_error(context, kind, text.c_str());
    } catch (...) {
        set_error(context, kind, "tenon: the tensor cannot be allocated");
    }
    return -1;
}

/// The allocator of the table: host memory. Needs no Python, and no thread state.
inline int allocate_managed(abi::dl_tensor* prototype, abi::managed_tensor_versioned** out, void* context,
                            set_error_fn set_error) noexcept {
    const auto fail = [&](const error& e) { return report(e, context, set_error); };
    if (prototype == nullptr || out == nullptr)
        return fail(malformed("prototype", "there is none, or no place for the result"));
    *out = nullptr;
    if (device(prototype->device) != device{}) {
        return fail(refused("device", "only memory of the CPU can be allocated here",
                            prototype->device.device_type, device{}.type));
    }
    abi::dl_tensor asked = *prototype;
    asked.strides = nullptr;  // not part of the question, and maybe never set
    if (auto ok = tenon::detail::validator::check_arrays(asked); !ok) return fail(ok.error());
    auto made = allocate(dtype(asked.dtype), extents(asked.shape, static_cast<std::size_t>(asked.ndim)));
    if (!made) return fail(made.error());
    auto managed = to_managed(std::move(*made));
    if (!managed) return fail(managed.error());
    *out = *managed;
    return 0;
}

/// A struct of anybody's becomes a Tensor. It is taken over on success alone: what is refused stays with the
/// caller, untouched, and may be released by it.
inline int table_to_object(abi::managed_tensor_versioned* managed, void** out) noexcept {
    interpreter* const here = interpreter::current();
    if (here == nullptr) return -1;
    if (out == nullptr || managed == nullptr) {
        raise(malformed("exchange table", "there is no struct, or no place for the object"), "tenon: ");
        return -1;
    }
    foreign received(managed);
    keep_alive owner = keep_managed(managed, true, here);
    auto taken = tensor::take_as(received, owner);
    received.disown();
    if (!taken) {
        owner.disown();
        raise(taken.error(), "tenon: ");
        return -1;
    }
    tenon::detail::validator::add_marks(*taken, tenon::detail::marks_of(managed));
    PyObject* const made = to_python(std::move(*taken));
    if (made == nullptr) {
        taken->disown();  // still there: it is taken on success alone
        return -1;
    }
    *out = made;
    return 0;
}

/// Work on host memory has no stream; work on other memory of ours is on the default one.
inline int default_stream(std::int32_t, std::int32_t, void** out) noexcept {
    if (out != nullptr) *out = nullptr;
    return 0;
}

}  // namespace tenon::py::detail
