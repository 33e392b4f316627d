// tests/cpp/device_view_test.cpp: typed accelerator windows carry address or handle, and cannot be read on
// the host.

#include <gtest/gtest.h>

#include <cstdint>
#include <type_traits>
#include <utility>

#include <tenon/tensor/device_view.hpp>

#include "support.hpp"

namespace {

using namespace tenon_test;
using tenon::device;
using tenon::device_view;
using tenon::errc;
namespace abi = tenon::abi;
namespace dc = tenon::abi::device_code;

static_assert(sizeof(device_view<float>) + sizeof(device_view<const void>) + sizeof(device_view<void>) > 0);

template <class V>
concept readable_on_the_host = requires(const V v) { v(0); } || requires(const V v) {
    v[0];
} || requires(const V v) { v.begin(); } || requires(const V v) { v.span(); } || requires(const V v) { *v; };
static_assert(!readable_on_the_host<device_view<float, 1>> && !readable_on_the_host<device_view<const void>>);
static_assert(std::is_same_v<decltype(std::declval<device_view<const float>>().data()), const float*>);
static_assert(std::is_trivially_copyable_v<device_view<float, 2>>);
static_assert(std::is_convertible_v<device_view<float, 2>, device_view<const float, 2>> &&
              !std::is_convertible_v<device_view<const float, 2>, device_view<float, 2>>);

spec on(device where) {
    return {.data = address(0x7f0000001000),
            .shape = {2, 3},
            .strides = ints{3, 1},
            .where = where,
            .byte_offset = 16};
}

TEST(DeviceView, AddressHasTheOffsetApplied) {
    for (const auto kind : {dc::cuda, dc::rocm, dc::oneapi, dc::ext_dev, dc::maia}) {
        const auto v = device_view<const float, 2>::from(made(on({kind, 0})));
        ASSERT_TRUE(v) << v.error();
        EXPECT_EQ(static_cast<const void*>(v->data()), address(0x7f0000001010));
        EXPECT_EQ(v->byte_offset(), 0U);
    }
}

TEST(DeviceView, HandleKeepsItsOffsetBeside) {
    for (const auto kind : {dc::opencl, dc::vulkan, dc::metal, dc::webgpu}) {
        const auto v = device_view<const float, 2>::from(made(on({kind, 0})));
        ASSERT_TRUE(v) << v.error();
        EXPECT_EQ(static_cast<const void*>(v->data()), address(0x7f0000001000));
        EXPECT_EQ(v->byte_offset(), 16U);
    }
}

TEST(DeviceView, DescribesTheTensor) {
    const auto t = made(on({dc::cuda, 0}));
    const auto check_it = [](const auto& v) {
        EXPECT_EQ(v.device_name(), "cuda:0");
        EXPECT_EQ(v.device(), device(dc::cuda, 0));
        EXPECT_EQ(v.dtype(), tenon::dtype_of<float>);
        EXPECT_EQ(v.ndim(), 2);
        EXPECT_EQ(v.size(), 6);
        EXPECT_EQ(v.nbytes(), 24);
        EXPECT_EQ(to_ints(v.shape()), (ints{2, 3}));
        EXPECT_EQ(to_ints(v.strides()), (ints{3, 1}));
        EXPECT_EQ(v.shape(1), 3);
        EXPECT_EQ(v.stride(0), 3);
        EXPECT_TRUE(v.is_c_contiguous());
    };
    check_it(*device_view<float, 2>::from(t));
    check_it(*device_view<const float>::from(t));
    check_it(*device_view<void>::from(t));
    check_it(*device_view<>::from(t));
    EXPECT_EQ(device_view<>::from(made(on({dc::rocm, 3})))->device_name(), "rocm:3");
}

TEST(DeviceView, HostMemoryIsNotForItUnlessADeviceCanUseIt) {
    expect_error(device_view<const float>::from(made(on({dc::cpu, 0}))), errc::refused, "device");
    for (const auto kind : {dc::cuda_host, dc::rocm_host, dc::cuda_managed}) {
        const auto t = made(on({kind, 0}));
        const auto on_device = device_view<const float>::from(t);
        const auto on_host = tenon::view<const float>::from(t);
        ASSERT_TRUE(on_device && on_host) << kind;
        EXPECT_EQ(static_cast<const void*>(on_device->data()), static_cast<const void*>(on_host->data()));
    }
}

TEST(DeviceView, MayAlsoOnlyRead) {
    const auto t = made(on({dc::cuda, 0}));
    const auto v = device_view<float, 2>::from(t);
    ASSERT_TRUE(v) << v.error();
    const device_view<const float, 2> read = *v;
    EXPECT_EQ(read.data(), v->data());
    EXPECT_EQ(to_ints(read.shape()), (ints{2, 3}));
}

TEST(DeviceView, StreamToLaunchOn) {
    void* const legacy = reinterpret_cast<void*>(std::uintptr_t{1});
    EXPECT_EQ(device_view<const float>::from(made(on({dc::cuda, 0})))->stream(), legacy);
    EXPECT_EQ(device_view<const float>::from(made(on({dc::cuda_managed, 0})))->stream(), legacy);
    EXPECT_EQ(device_view<const float>::from(made(on({dc::rocm, 0})))->stream(), nullptr);
    EXPECT_EQ(device_view<const float>::from(made(on({dc::metal, 0})))->stream(), nullptr);
    int here = 0;
    auto t = made(on({dc::cuda, 0}));
    t.set_stream(&here);
    EXPECT_EQ(device_view<const float>::from(t)->stream(), &here);
    EXPECT_EQ(t.share()->stream(), &here);
    const auto owned = tenon::tensor::own(
        tenon::tensor_info::contiguous(reinterpret_cast<float*>(4096), {4}, {dc::cuda, 0}).on_stream(&here),
        tenon::keep_alive());
    EXPECT_EQ(owned->stream(), &here);
}

TEST(DeviceView, RefusesLikeAView) {
    spec s = on({dc::cuda, 0});
    expect_error(device_view<const double>::from(made(s)), errc::refused, "dtype");
    expect_error(device_view<const float, 1>::from(made(s)), errc::refused, "ndim");
    s.strides = ints{0, 1};
    expect_error(device_view<float>::from(made(s)), errc::refused, "strides");
    EXPECT_TRUE(device_view<const float>::from(made(s)));
    s = on({dc::cuda, 0});
    s.flags = abi::flag::read_only;
    expect_error(device_view<float>::from(made(s)), errc::refused, "flags");
    expect_error(device_view<void>::from(made(s)), errc::refused, "flags");
    EXPECT_TRUE(device_view<const float>::from(made(s)));
}

TEST(DeviceView, UnknownDevicesWorkOpaquely) {
    const auto v = device_view<>::from(made(on({99, 2})));
    ASSERT_TRUE(v);
    EXPECT_EQ(v->device_name(), "device(99):2");
}

}  // namespace
