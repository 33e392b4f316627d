// tests/cpp/abi_layout.cpp: freezes the binary layouts of DLPack 1.3, of Arrow's C interfaces and of the
// handover between modules at compile time; nothing here runs.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <tenon/abi/arrow.hpp>
#include <tenon/abi/dlpack.hpp>
#include <tenon/abi/handover.hpp>

namespace abi = tenon::abi;

static_assert(sizeof(void*) == 8 && sizeof(long) == 8, "the offsets below are those of LP64");

template <class T>
constexpr bool plain = std::is_standard_layout_v<T> && std::is_trivially_copyable_v<T> &&
                       std::is_trivially_default_constructible_v<T>;

#define TENON_FIELD(type, field, field_type, offset)       \
    static_assert(offsetof(abi::type, field) == (offset)); \
    static_assert(std::is_same_v<decltype(abi::type::field), field_type>)

static_assert(abi::dlpack_major == 1 && abi::dlpack_minor == 3);

static_assert(plain<abi::dl_version> && sizeof(abi::dl_version) == 8 && alignof(abi::dl_version) == 4);
TENON_FIELD(dl_version, major, std::uint32_t, 0);
TENON_FIELD(dl_version, minor, std::uint32_t, 4);

static_assert(plain<abi::dl_device> && sizeof(abi::dl_device) == 8 && alignof(abi::dl_device) == 4);
TENON_FIELD(dl_device, device_type, std::int32_t, 0);
TENON_FIELD(dl_device, device_id, std::int32_t, 4);

static_assert(plain<abi::dl_dtype> && sizeof(abi::dl_dtype) == 4 && alignof(abi::dl_dtype) == 2);
TENON_FIELD(dl_dtype, code, std::uint8_t, 0);
TENON_FIELD(dl_dtype, bits, std::uint8_t, 1);
TENON_FIELD(dl_dtype, lanes, std::uint16_t, 2);

static_assert(plain<abi::dl_tensor> && sizeof(abi::dl_tensor) == 48 && alignof(abi::dl_tensor) == 8);
TENON_FIELD(dl_tensor, data, void*, 0);
TENON_FIELD(dl_tensor, device, abi::dl_device, 8);
TENON_FIELD(dl_tensor, ndim, std::int32_t, 16);
TENON_FIELD(dl_tensor, dtype, abi::dl_dtype, 20);
TENON_FIELD(dl_tensor, shape, std::int64_t*, 24);
TENON_FIELD(dl_tensor, strides, std::int64_t*, 32);
TENON_FIELD(dl_tensor, byte_offset, std::uint64_t, 40);

static_assert(plain<abi::managed_tensor> && sizeof(abi::managed_tensor) == 64);
TENON_FIELD(managed_tensor, tensor, abi::dl_tensor, 0);
TENON_FIELD(managed_tensor, manager_ctx, void*, 48);
TENON_FIELD(managed_tensor, deleter, void (*)(abi::managed_tensor*), 56);

static_assert(plain<abi::managed_tensor_versioned> && sizeof(abi::managed_tensor_versioned) == 80);
TENON_FIELD(managed_tensor_versioned, version, abi::dl_version, 0);
TENON_FIELD(managed_tensor_versioned, manager_ctx, void*, 8);
TENON_FIELD(managed_tensor_versioned, deleter, void (*)(abi::managed_tensor_versioned*), 16);
TENON_FIELD(managed_tensor_versioned, flags, std::uint64_t, 24);
TENON_FIELD(managed_tensor_versioned, tensor, abi::dl_tensor, 32);

static_assert(plain<abi::exchange_api_header> && sizeof(abi::exchange_api_header) == 16);
TENON_FIELD(exchange_api_header, version, abi::dl_version, 0);
TENON_FIELD(exchange_api_header, prev_api, abi::exchange_api_header*, 8);

using set_error_fn = void (*)(void*, const char*, const char*);
using allocator_fn = int (*)(abi::dl_tensor*, abi::managed_tensor_versioned**, void*, set_error_fn);
using from_py_fn = int (*)(void*, abi::managed_tensor_versioned**);
using to_py_fn = int (*)(abi::managed_tensor_versioned*, void**);
using borrow_fn = int (*)(void*, abi::dl_tensor*);
using stream_fn = int (*)(std::int32_t, std::int32_t, void**);

static_assert(plain<abi::exchange_api> && sizeof(abi::exchange_api) == 56);
TENON_FIELD(exchange_api, header, abi::exchange_api_header, 0);
TENON_FIELD(exchange_api, managed_tensor_allocator, allocator_fn, 16);
TENON_FIELD(exchange_api, managed_tensor_from_py_object_no_sync, from_py_fn, 24);
TENON_FIELD(exchange_api, managed_tensor_to_py_object_no_sync, to_py_fn, 32);
TENON_FIELD(exchange_api, dltensor_from_py_object_no_sync, borrow_fn, 40);
TENON_FIELD(exchange_api, current_work_stream, stream_fn, 48);

static_assert(abi::flag::read_only == 1 && abi::flag::is_copied == 2 && abi::flag::subbyte_padded == 4);
static_assert(abi::flag::all_known == 7);

namespace dc = abi::device_code;
static_assert(dc::cpu == 1 && dc::cuda == 2 && dc::cuda_host == 3 && dc::opencl == 4);
static_assert(dc::vulkan == 7 && dc::metal == 8 && dc::vpi == 9 && dc::rocm == 10 && dc::rocm_host == 11);
static_assert(dc::ext_dev == 12 && dc::cuda_managed == 13 && dc::oneapi == 14 && dc::webgpu == 15);
static_assert(dc::hexagon == 16 && dc::maia == 17 && dc::trainium == 18);

namespace tc = abi::type_code;
static_assert(tc::int_ == 0 && tc::uint == 1 && tc::float_ == 2 && tc::opaque_handle == 3);
static_assert(tc::bfloat == 4 && tc::complex == 5 && tc::bool_ == 6);
static_assert(tc::float8_e3m4 == 7 && tc::float8_e4m3 == 8 && tc::float8_e4m3b11fnuz == 9);
static_assert(tc::float8_e4m3fn == 10 && tc::float8_e4m3fnuz == 11 && tc::float8_e5m2 == 12);
static_assert(tc::float8_e5m2fnuz == 13 && tc::float8_e8m0fnu == 14);
static_assert(tc::float6_e2m3fn == 15 && tc::float6_e3m2fn == 16 && tc::float4_e2m1fn == 17);

static_assert(plain<abi::arrow_schema> && sizeof(abi::arrow_schema) == 72);
TENON_FIELD(arrow_schema, format, const char*, 0);
TENON_FIELD(arrow_schema, name, const char*, 8);
TENON_FIELD(arrow_schema, metadata, const char*, 16);
TENON_FIELD(arrow_schema, flags, std::int64_t, 24);
TENON_FIELD(arrow_schema, n_children, std::int64_t, 32);
TENON_FIELD(arrow_schema, children, abi::arrow_schema**, 40);
TENON_FIELD(arrow_schema, dictionary, abi::arrow_schema*, 48);
TENON_FIELD(arrow_schema, release, void (*)(abi::arrow_schema*), 56);
TENON_FIELD(arrow_schema, private_data, void*, 64);

static_assert(plain<abi::arrow_array> && sizeof(abi::arrow_array) == 80);
TENON_FIELD(arrow_array, length, std::int64_t, 0);
TENON_FIELD(arrow_array, null_count, std::int64_t, 8);
TENON_FIELD(arrow_array, offset, std::int64_t, 16);
TENON_FIELD(arrow_array, n_buffers, std::int64_t, 24);
TENON_FIELD(arrow_array, n_children, std::int64_t, 32);
TENON_FIELD(arrow_array, buffers, const void**, 40);
TENON_FIELD(arrow_array, children, abi::arrow_array**, 48);
TENON_FIELD(arrow_array, dictionary, abi::arrow_array*, 56);
TENON_FIELD(arrow_array, release, void (*)(abi::arrow_array*), 64);
TENON_FIELD(arrow_array, private_data, void*, 72);

static_assert(plain<abi::arrow_device_array> && sizeof(abi::arrow_device_array) == 128);
TENON_FIELD(arrow_device_array, array, abi::arrow_array, 0);
TENON_FIELD(arrow_device_array, device_id, std::int64_t, 80);
TENON_FIELD(arrow_device_array, device_type, std::int32_t, 88);
TENON_FIELD(arrow_device_array, sync_event, void*, 96);
TENON_FIELD(arrow_device_array, reserved, std::int64_t[3], 104);

using get_schema_fn = int (*)(abi::arrow_array_stream*, abi::arrow_schema*);
using get_next_fn = int (*)(abi::arrow_array_stream*, abi::arrow_array*);
using get_last_error_fn = const char* (*)(abi::arrow_array_stream*);

static_assert(plain<abi::arrow_array_stream> && sizeof(abi::arrow_array_stream) == 40);
TENON_FIELD(arrow_array_stream, get_schema, get_schema_fn, 0);
TENON_FIELD(arrow_array_stream, get_next, get_next_fn, 8);
TENON_FIELD(arrow_array_stream, get_last_error, get_last_error_fn, 16);
TENON_FIELD(arrow_array_stream, release, void (*)(abi::arrow_array_stream*), 24);
TENON_FIELD(arrow_array_stream, private_data, void*, 32);

static_assert(abi::arrow_flag::dictionary_ordered == 1 && abi::arrow_flag::nullable == 2);
static_assert(abi::arrow_flag::map_keys_sorted == 4);

static_assert(abi::handover_major == 0x544e4f4e && abi::handover_minor == 1);

static_assert(plain<abi::tensor_parts> && sizeof(abi::tensor_parts) == 136);
TENON_FIELD(tensor_parts, size, std::uint64_t, 0);
TENON_FIELD(tensor_parts, tensor, abi::dl_tensor, 8);
TENON_FIELD(tensor_parts, flags, std::uint64_t, 56);
TENON_FIELD(tensor_parts, version, abi::dl_version, 64);
TENON_FIELD(tensor_parts, stream, void*, 72);
TENON_FIELD(tensor_parts, subject, void*, 80);
TENON_FIELD(tensor_parts, context, void*, 88);
TENON_FIELD(tensor_parts, release, void (*)(void*, void*), 96);
TENON_FIELD(tensor_parts, is_plain_memory, std::uint64_t, 104);
TENON_FIELD(tensor_parts, referenced, void*, 112);
TENON_FIELD(tensor_parts, owner, void*, 120);
TENON_FIELD(tensor_parts, is_capture_going_on, int (*)(abi::dl_device), 128);

using take_fn = int (*)(const abi::tensor_parts*, void**);

static_assert(plain<abi::handover_api> && sizeof(abi::handover_api) == 24);
TENON_FIELD(handover_api, header, abi::exchange_api_header, 0);
TENON_FIELD(handover_api, take, take_fn, 16);
