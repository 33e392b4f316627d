// tenon/bind/place.hpp: where an array must be: a tag for each kind of device that DLPack has.
#pragma once

#include <cstdint>

#include <tenon/value/device.hpp>

namespace tenon {
namespace bind {

/// Memory that a device of this kind can use; -1: any.
template <std::int32_t Kind>
struct place_of {
    static constexpr std::int32_t device_kind = Kind;
};

template <class P>
inline constexpr bool is_place = requires { P::device_kind; };
/// That of a property, which may be about something else.
template <class P>
inline constexpr std::int32_t kind_of = -1;
template <class P>
    requires is_place<P>
inline constexpr std::int32_t kind_of<P> = P::device_kind;

}  // namespace bind

// By the names that `tenon::name` has for them.
struct cpu : bind::place_of<abi::device_code::cpu> {};
struct cuda : bind::place_of<abi::device_code::cuda> {};
struct cuda_host : bind::place_of<abi::device_code::cuda_host> {};
struct cuda_managed : bind::place_of<abi::device_code::cuda_managed> {};
struct rocm : bind::place_of<abi::device_code::rocm> {};
struct rocm_host : bind::place_of<abi::device_code::rocm_host> {};
struct opencl : bind::place_of<abi::device_code::opencl> {};
struct vulkan : bind::place_of<abi::device_code::vulkan> {};
struct metal : bind::place_of<abi::device_code::metal> {};
struct vpi : bind::place_of<abi::device_code::vpi> {};
struct ext_dev : bind::place_of<abi::device_code::ext_dev> {};
struct oneapi : bind::place_of<abi::device_code::oneapi> {};
struct webgpu : bind::place_of<abi::device_code::webgpu> {};
struct hexagon : bind::place_of<abi::device_code::hexagon> {};
struct maia : bind::place_of<abi::device_code::maia> {};
struct trn : bind::place_of<abi::device_code::trainium> {};
struct tpu : bind::place_of<abi::device_code::tpu> {};
struct tpu_host : bind::place_of<abi::device_code::tpu_host> {};
struct ascend : bind::place_of<abi::device_code::ascend> {};
struct any_device : bind::place_of<-1> {};

}  // namespace tenon
