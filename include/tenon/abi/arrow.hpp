// tenon/abi/arrow.hpp: the Arrow C data, device and stream interfaces as plain structs, with no logic.
//
// Wire format, frozen by tests/cpp/abi_layout.cpp. A struct whose `release` is null has been released, or
// moved elsewhere: its bytes copied, `release` of the source set to null. Children move with their parent.
#pragma once

#include <cstdint>

namespace tenon::abi {

namespace arrow_flag {
inline constexpr std::int64_t dictionary_ordered = 1;
inline constexpr std::int64_t nullable = 2;
inline constexpr std::int64_t map_keys_sorted = 4;
}  // namespace arrow_flag

/// A type. `metadata` is a count and that many pairs of key and value, each an int32 of its bytes before it.
struct arrow_schema {
    const char* format;
    const char* name;
    const char* metadata;
    std::int64_t flags;
    std::int64_t n_children;
    arrow_schema** children;
    arrow_schema* dictionary;
    void (*release)(arrow_schema* self);
    void* private_data;
};

/// The data of one array. `offset` counts elements from the start of every buffer; `null_count` may be -1 for
/// "not counted".
struct arrow_array {
    std::int64_t length;
    std::int64_t null_count;
    std::int64_t offset;
    std::int64_t n_buffers;
    std::int64_t n_children;
    const void** buffers;
    arrow_array** children;
    arrow_array* dictionary;
    void (*release)(arrow_array* self);
    void* private_data;
};

/// The same with where its buffers are, in DLPack's numbers. `sync_event` is null or points to an event of
/// the device's kind (on CUDA a `cudaEvent_t*`), after which the data is complete.
struct arrow_device_array {
    arrow_array array;
    std::int64_t device_id;
    std::int32_t device_type;
    void* sync_event;
    std::int64_t reserved[3];
};

/// Arrays of one type, one after another. The functions return 0 or an errno; a released array ends it.
struct arrow_array_stream {
    int (*get_schema)(arrow_array_stream* self, arrow_schema* out);
    int (*get_next)(arrow_array_stream* self, arrow_array* out);
    const char* (*get_last_error)(arrow_array_stream* self);
    void (*release)(arrow_array_stream* self);
    void* private_data;
};

}  // namespace tenon::abi
