// tenon/abi/dlpack.hpp: the DLPack 1.3 binary interface as plain structs, with no logic.
//
// Wire format, frozen by tests/cpp/abi_layout.cpp. A producer may send values newer than this header, so
// device and dtype codes travel as integers, and the constants below are only names for some of them.
#pragma once

#include <cstdint>

namespace tenon::abi {

inline constexpr std::uint32_t dlpack_major = 1;
inline constexpr std::uint32_t dlpack_minor = 3;

struct dl_version {
    std::uint32_t major;
    std::uint32_t minor;
};

/// Device kinds (the field is `int32_t` on the wire).
namespace device_code {
inline constexpr std::int32_t cpu = 1;
inline constexpr std::int32_t cuda = 2;
inline constexpr std::int32_t cuda_host = 3;
inline constexpr std::int32_t opencl = 4;
inline constexpr std::int32_t vulkan = 7;
inline constexpr std::int32_t metal = 8;
inline constexpr std::int32_t vpi = 9;
inline constexpr std::int32_t rocm = 10;
inline constexpr std::int32_t rocm_host = 11;
inline constexpr std::int32_t ext_dev = 12;
inline constexpr std::int32_t cuda_managed = 13;
inline constexpr std::int32_t oneapi = 14;
inline constexpr std::int32_t webgpu = 15;
inline constexpr std::int32_t hexagon = 16;
inline constexpr std::int32_t maia = 17;
inline constexpr std::int32_t trainium = 18;
// On DLPack's main branch, after 1.3.
inline constexpr std::int32_t tpu = 19;
inline constexpr std::int32_t tpu_host = 20;
inline constexpr std::int32_t ascend = 21;
}  // namespace device_code

struct dl_device {
    std::int32_t device_type;
    std::int32_t device_id;
};

/// Element kinds (the field is `uint8_t` on the wire).
namespace type_code {
inline constexpr std::uint8_t int_ = 0;
inline constexpr std::uint8_t uint = 1;
inline constexpr std::uint8_t float_ = 2;
inline constexpr std::uint8_t opaque_handle = 3;
inline constexpr std::uint8_t bfloat = 4;
inline constexpr std::uint8_t complex = 5;
inline constexpr std::uint8_t bool_ = 6;
inline constexpr std::uint8_t float8_e3m4 = 7;
inline constexpr std::uint8_t float8_e4m3 = 8;
inline constexpr std::uint8_t float8_e4m3b11fnuz = 9;
inline constexpr std::uint8_t float8_e4m3fn = 10;
inline constexpr std::uint8_t float8_e4m3fnuz = 11;
inline constexpr std::uint8_t float8_e5m2 = 12;
inline constexpr std::uint8_t float8_e5m2fnuz = 13;
inline constexpr std::uint8_t float8_e8m0fnu = 14;
inline constexpr std::uint8_t float6_e2m3fn = 15;
inline constexpr std::uint8_t float6_e3m2fn = 16;
inline constexpr std::uint8_t float4_e2m1fn = 17;
inline constexpr std::uint8_t bcomplex = 18;  // two bfloats; on DLPack's main branch, after 1.3
}  // namespace type_code

struct dl_dtype {
    std::uint8_t code;
    std::uint8_t bits;
    std::uint16_t lanes;
};

/// A strided tensor that owns nothing. The first element lies at `data + byte_offset`; strides count
/// elements.
struct dl_tensor {
    void* data;
    dl_device device;
    std::int32_t ndim;
    dl_dtype dtype;
    std::int64_t* shape;
    std::int64_t* strides;
    std::uint64_t byte_offset;
};

/// The struct inside a capsule named "dltensor": no version, no flags.
struct managed_tensor {
    dl_tensor tensor;
    void* manager_ctx;
    void (*deleter)(managed_tensor* self);
};

namespace flag {
inline constexpr std::uint64_t read_only = 1;
inline constexpr std::uint64_t is_copied = 2;
inline constexpr std::uint64_t subbyte_padded = 4;
inline constexpr std::uint64_t all_known = read_only | is_copied | subbyte_padded;
}  // namespace flag

/// The struct inside a capsule named "dltensor_versioned". Only the fields before `tensor` keep their place
/// across major versions.
struct managed_tensor_versioned {
    dl_version version;
    void* manager_ctx;
    void (*deleter)(managed_tensor_versioned* self);
    std::uint64_t flags;
    dl_tensor tensor;
};

/// Common head of every generation of exchange table; `prev_api` leads to an older major, or is null.
struct exchange_api_header {
    dl_version version;
    exchange_api_header* prev_api;
};

/// The C exchange table a Python type publishes. Every call returns 0, or -1 with an error reported.
struct exchange_api {
    exchange_api_header header;

    /// Allocates like `prototype` (dtype, ndim, shape, device); needs no Python; reports through `set_error`.
    int (*managed_tensor_allocator)(dl_tensor* prototype, managed_tensor_versioned** out, void* error_ctx,
                                    void (*set_error)(void* error_ctx, const char* kind,
                                                      const char* message));
    /// Owning import: `*out` must be released through its deleter.
    int (*managed_tensor_from_py_object_no_sync)(void* py_object, managed_tensor_versioned** out);
    /// Export: steals `tensor`, writes a new reference.
    int (*managed_tensor_to_py_object_no_sync)(managed_tensor_versioned* tensor, void** out_py_object);
    /// Borrowing import: `*out` is good only until control returns to Python. May be null.
    int (*dltensor_from_py_object_no_sync)(void* py_object, dl_tensor* out);
    int (*current_work_stream)(std::int32_t device_type, std::int32_t device_id, void** out_stream);
};

}  // namespace tenon::abi
