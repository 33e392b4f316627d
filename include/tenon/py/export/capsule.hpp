// tenon/py/export/capsule.hpp: a tensor owned by a Python object leaves as a DLPack capsule, legacy or
// versioned.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <tenon/abi/dlpack.hpp>
#include <tenon/core/tensor_ref.hpp>
#include <tenon/py/call.hpp>
#include <tenon/py/capsule.hpp>
#include <tenon/py/interpreter.hpp>
#include <tenon/py/python.hpp>

namespace tenon::py {

namespace detail {

/// One allocation: the managed struct, then shape and strides. `manager_ctx` points back at the whole.
template <class Managed>
struct exported {
    Managed managed;
    PyObject* keeper;
    interpreter* home;
    std::int64_t* metadata() noexcept { return reinterpret_cast<std::int64_t*>(this + 1); }

    static void release(Managed* self) noexcept {
        auto* whole = static_cast<exported*>(self->manager_ctx);
        PyObject* const keeper = whole->keeper;
        interpreter* const home = whole->home;
        std::free(whole);
        home->enter([&] { call::drop(keeper); });
    }
};

template <class Managed>
void drop_unconsumed(PyObject* capsule, const char* name) noexcept {
    // A consumer renames the capsule; then the struct is no longer ours.
    if (PyCapsule_IsValid(capsule, name) == 0) return;
    auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
    if (managed != nullptr && managed->deleter != nullptr) managed->deleter(managed);
}
inline void drop_legacy(PyObject* capsule) noexcept {
    drop_unconsumed<abi::managed_tensor>(capsule, capsule_legacy);
}
inline void drop_versioned(PyObject* capsule) noexcept {
    drop_unconsumed<abi::managed_tensor_versioned>(capsule, capsule_versioned);
}

template <class Managed>
[[nodiscard]] PyObject* make_capsule(const tensor_ref& t, PyObject* keeper, bool fresh_copy) noexcept {
    constexpr bool versioned = std::is_same_v<Managed, abi::managed_tensor_versioned>;
    interpreter* const home = interpreter::current();
    if (home == nullptr) return nullptr;
    const auto rank = static_cast<std::size_t>(t.ndim());
    void* const room = std::malloc(sizeof(exported<Managed>) + 2 * rank * sizeof(std::int64_t));
    if (room == nullptr) return PyErr_NoMemory();
    auto* whole = new (room) exported<Managed>{};
    std::int64_t* const shape = whole->metadata();
    for (std::size_t i = 0; i < rank; ++i) {
        shape[i] = t.shape(i);
        shape[rank + i] = t.stride(i);
    }
    if constexpr (versioned) {
        whole->managed.version = {abi::dlpack_major, abi::dlpack_minor};
        // "Copied" tells a consumer that nobody else sees the memory: true of a copy made for it, and of no
        // other.
        whole->managed.flags = (t.flags() & ~abi::flag::is_copied) | (fresh_copy ? abi::flag::is_copied : 0);
    }
    // Consumers that ignore `byte_offset` are common: it is folded into the address wherever there is one.
    const bool fold = !t.device().has_opaque_handle();
    whole->managed.tensor = {
        fold ? t.data() : t.base(), t.device().to_abi(), t.ndim(), t.dtype().to_abi(), shape, shape + rank,
        fold ? 0 : t.byte_offset()};
    whole->managed.manager_ctx = whole;
    whole->managed.deleter = &exported<Managed>::release;
    whole->home = home;
    PyObject* const capsule = PyCapsule_New(&whole->managed, versioned ? capsule_versioned : capsule_legacy,
                                            versioned ? drop_versioned : drop_legacy);
    if (capsule == nullptr) {
        std::free(whole);
        return nullptr;
    }
    Py_INCREF(keeper);
    whole->keeper = keeper;
    return capsule;
}

}  // namespace detail

/// A new capsule over memory that `keeper` keeps alive; null with an exception set on failure. A legacy
/// capsule cannot say that memory is read-only, so read-only tensors never leave in one. `fresh_copy` says
/// that the memory was copied for this consumer alone.
[[nodiscard]] inline PyObject* to_capsule(const tensor_ref& t, PyObject* keeper, bool versioned,
                                          bool fresh_copy = false) noexcept {
    if (versioned) return detail::make_capsule<abi::managed_tensor_versioned>(t, keeper, fresh_copy);
    if (t.is_read_only() || t.is_subbyte_padded()) {
        PyErr_SetString(
            PyExc_BufferError,
            "tenon: a read-only (or padded sub-byte) tensor cannot leave as a legacy DLPack capsule, which "
            "has no flags; pass max_version=(1, 0) or later");
        return nullptr;
    }
    return detail::make_capsule<abi::managed_tensor>(t, keeper, false);
}

}  // namespace tenon::py
