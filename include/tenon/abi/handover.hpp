// tenon/abi/handover.hpp: how modules hand tensors to the package `tenon`, whatever compiler and version made
// either.
//
// The exchange table of `tenon.Tensor` leads to this one by its `prev_api`: consumers that look for DLPack's
// major version 1 have found it by then, and nobody else looks further. Frozen by tests/cpp/abi_layout.cpp;
// what is new comes at the end, and `size` and the minor version tell who knows of it.
#pragma once

#include <cstdint>

#include <tenon/abi/dlpack.hpp>

namespace tenon::abi {

inline constexpr std::uint32_t handover_major = 0x544e4f4e;  // no version of DLPack's
inline constexpr std::uint32_t handover_minor = 1;

/// A tensor in its parts. The arrays behind `tensor.shape` and `tensor.strides` are lent for the call.
struct tensor_parts {
    std::uint64_t size;  ///< of this struct, as the sender knows it
    dl_tensor tensor;
    std::uint64_t flags;  ///< DLPack's, and marks above: bit 63 may leave as legacy, 62 requires grad
    dl_version version;   ///< what its producer stated; 0.0 for none
    void* stream;         ///< on which the memory is ready; null: the default one
    /// `release(subject, context)` lets go of the memory, on any thread, once; it may be null.
    void* subject;
    void* context;
    void (*release)(void* subject, void* context);
    std::uint64_t is_plain_memory;  ///< not 0: nothing else is let go of with it
    void* referenced;  ///< null, or a PyObject the owner holds one reference of, for the collector to count
    void* owner;       ///< null, or the PyObject that the memory belongs to, alive as long as the owner
    /// Whether a library that the sender knows works on a stream that is being captured: the memory is not
    /// let go of then. For good, on any thread; not 0 for yes. Null for memory without streams.
    int (*is_capture_going_on)(dl_device where);
};

struct handover_api {
    exchange_api_header header;
    /// 0 and a new reference, and the memory is taken over; or -1 with an exception set, and it is not.
    int (*take)(const tensor_parts* parts, void** out_object);
};

}  // namespace tenon::abi
