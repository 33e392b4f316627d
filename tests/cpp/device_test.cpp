// tests/cpp/device_test.cpp: device names, their parsing, the predicates, and values newer than this library.

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include <tenon/value/device.hpp>

namespace dc = tenon::abi::device_code;
using tenon::device;
using tenon::device_from_name;

namespace {

TEST(Device, DefaultIsTheCpu) {
    EXPECT_EQ(device{}, device(dc::cpu, 0));
    EXPECT_TRUE(device{}.is_cpu());
}

TEST(Device, Names) {
    EXPECT_EQ(tenon::name(device{}), "cpu");
    EXPECT_EQ(tenon::name(device(dc::cpu, 3)), "cpu:3");
    EXPECT_EQ(tenon::name(device(dc::cuda, 0)), "cuda:0");
    EXPECT_EQ(tenon::name(device(dc::cuda, 7)), "cuda:7");
    EXPECT_EQ(tenon::name(device(dc::cuda_host, 0)), "cuda_host:0");
    EXPECT_EQ(tenon::name(device(dc::metal, 0)), "metal:0");
}

TEST(Device, WhatHasNoNameSurvivesAndPrintsAsANumber) {
    for (const std::int32_t type : {0, 5, 6, 22, 99, -1, INT32_MAX, INT32_MIN}) {
        const device d(type, 4);
        EXPECT_FALSE(tenon::is_known(d)) << type;
        EXPECT_EQ(tenon::name(d), "device(" + std::to_string(type) + "):4");
        EXPECT_EQ(device_from_name(tenon::name(d)), type > 0 ? std::optional(d) : std::nullopt);
        const device back{d.to_abi()};
        EXPECT_EQ(back, d);
        EXPECT_FALSE(d.is_host_accessible()) << type;
        EXPECT_FALSE(d.has_opaque_handle()) << type;
        EXPECT_FALSE(d.has_streams()) << type;
    }
}

TEST(Device, EveryKindOfDlpack13IsKnownAndReadsBack) {
    std::set<std::string> names;
    for (std::int32_t type = 1; type <= 18; ++type) {
        const device d(type, 2);
        const bool defined = type != 5 && type != 6;
        EXPECT_EQ(tenon::is_known(d), defined) << type;
        if (!defined) continue;
        EXPECT_TRUE(names.insert(tenon::name(d)).second) << type;
        EXPECT_EQ(device_from_name(tenon::name(d)), d) << type;
    }
    EXPECT_EQ(names.size(), 16U);
}

TEST(Device, Parsing) {
    EXPECT_EQ(device_from_name("cpu"), device(dc::cpu, 0));
    EXPECT_EQ(device_from_name("cpu:0"), device(dc::cpu, 0));
    EXPECT_EQ(device_from_name("cuda"), device(dc::cuda, 0));
    EXPECT_EQ(device_from_name("cuda:1"), device(dc::cuda, 1));
    EXPECT_EQ(device_from_name("rocm:2147483647"), device(dc::rocm, INT32_MAX));
    EXPECT_EQ(device_from_name("tpu_host:1"), device(dc::tpu_host, 1));
    EXPECT_EQ(device_from_name("device(99)"), device(99, 0));
    EXPECT_EQ(device_from_name("device(99):7"), device(99, 7));
    for (const char* wrong : {"",
                              ":",
                              ":0",
                              "cuda:",
                              "cuda:-1",
                              "cuda:+1",
                              "cuda: 1",
                              "cuda:1 ",
                              "cuda:1x",
                              "cuda:0x1",
                              "cuda:1:2",
                              "cuda:2147483648",
                              "cuda:99999999999999999999",
                              " cuda",
                              "CUDA",
                              "gpu",
                              "cud",
                              "cudaa",
                              "device(0):0",
                              "device(-1):0",
                              "device():0",
                              "device(99",
                              "device(",
                              "device(99)x:0",
                              "device(99):-1",
                              "device(2147483648):0"})
        EXPECT_EQ(device_from_name(wrong), std::nullopt) << '"' << wrong << '"';
}

TEST(Device, Predicates) {
    const std::set<std::int32_t> host{dc::cpu, dc::cuda_host, dc::rocm_host, dc::cuda_managed};
    const std::set<std::int32_t> handles{dc::opencl, dc::vulkan, dc::metal, dc::webgpu};
    const std::set<std::int32_t> streams{dc::cuda, dc::rocm};
    for (std::int32_t type = -2; type < 64; ++type) {
        const device d(type, 0);
        EXPECT_EQ(d.is_host_accessible(), host.contains(type)) << type;
        EXPECT_EQ(d.has_opaque_handle(), handles.contains(type)) << type;
        EXPECT_EQ(d.has_streams(), streams.contains(type)) << type;
        EXPECT_EQ(d.is_cpu(), type == dc::cpu);
        EXPECT_EQ(d.is_cuda(), type == dc::cuda);
        EXPECT_EQ(d.is_rocm(), type == dc::rocm);
    }
}

TEST(Device, EqualityComparesKindAndId) {
    EXPECT_NE(device(dc::cuda, 0), device(dc::cuda, 1));
    EXPECT_NE(device(dc::cuda, 0), device(dc::rocm, 0));
}

}  // namespace
