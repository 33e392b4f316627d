// tests/cpp/dispatch_test.cpp: the right function runs for where a tensor lives and for what it is made of,
// once.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/core/dispatch.hpp>

#include "support.hpp"

namespace {

using namespace tenon_test;
using tenon::device;
using tenon::device_view;
using tenon::dispatch;
using tenon::dispatch_dtype;
using tenon::errc;
using tenon::view;
namespace abi = tenon::abi;
namespace dc = tenon::abi::device_code;

float memory[6];

spec on(device where) { return {.data = memory, .shape = {2, 3}, .strides = ints{3, 1}, .where = where}; }

std::string where_run(const tenon::tensor& t) {
    const auto ran = dispatch(
        t, [](view<>) { return std::string("host"); }, [](device_view<> v) { return v.device_name(); });
    return ran ? *ran : "error: " + ran.error().message();
}

TEST(Dispatch, HostMemoryGoesToTheView) {
    for (const auto kind : {dc::cpu, dc::cuda_host, dc::rocm_host, dc::cuda_managed})
        EXPECT_EQ(where_run(made(on({kind, 0}))), "host") << kind;
}

TEST(Dispatch, AcceleratorsGoToTheDeviceView) {
    EXPECT_EQ(where_run(made(on({dc::cuda, 0}))), "cuda:0");
    EXPECT_EQ(where_run(made(on({dc::cuda, 7}))), "cuda:7");
    EXPECT_EQ(where_run(made(on({dc::rocm, 1}))), "rocm:1");
    EXPECT_EQ(where_run(made(on({dc::metal, 0}))), "metal:0");
    EXPECT_EQ(where_run(made(on({dc::trainium, 0}))), "trn:0");
    EXPECT_EQ(where_run(made(on({99, 0}), {.allow_unknown = true})), "device(99):0");
}

TEST(Dispatch, NothingIsCopied) {
    const auto t = made(on({}));
    const auto at = dispatch<float, 2>(
        t, [](view<float, 2> v) { return v.data(); }, [](device_view<float, 2> v) { return v.data(); });
    ASSERT_TRUE(at);
    EXPECT_EQ(*at, memory);
}

TEST(Dispatch, OneFunctionMayTakeBoth) {
    const auto elements = [](const auto& window) { return window.size(); };
    EXPECT_EQ(*dispatch(made(on({})), elements), 6);
    EXPECT_EQ(*dispatch(made(on({dc::cuda, 0})), elements), 6);
}

TEST(Dispatch, FunctionsMayReturnNothing) {
    int host = 0;
    int accelerator = 0;
    const auto run = [&](const tenon::tensor& t) {
        return dispatch<const float>(
            t, [&](view<const float>) { ++host; }, [&](device_view<const float>) { ++accelerator; });
    };
    const tenon::result<void> on_host = run(made(on({})));
    EXPECT_TRUE(on_host);
    EXPECT_TRUE(run(made(on({dc::cuda, 0}))));
    EXPECT_EQ(host, 1);
    EXPECT_EQ(accelerator, 1);
}

TEST(Dispatch, FunctionsMayBeMoveOnlyAndReturnMoveOnly) {
    auto token = std::make_unique<int>(5);
    auto out = dispatch(
        made(on({})), [token = std::move(token)](view<>) mutable { return std::move(token); },
        [](device_view<>) { return std::unique_ptr<int>(); });
    ASSERT_TRUE(out);
    EXPECT_EQ(**out, 5);
}

TEST(Dispatch, UnmetConstraintsRunNothing) {
    int calls = 0;
    const auto run = [&]<class T, int Rank>(const tenon::tensor& t, std::type_identity<T>,
                                            std::integral_constant<int, Rank>) {
        return dispatch<T, Rank>(t, [&](view<T, Rank>) { ++calls; }, [&](device_view<T, Rank>) { ++calls; });
    };
    const std::integral_constant<int, 2> two;
    const std::integral_constant<int, 1> one;
    for (const device where : {device{}, device{dc::cuda, 0}}) {
        spec s = on(where);
        expect_error(run(made(s), std::type_identity<double>{}, two), errc::refused, "dtype");
        expect_error(run(made(s), std::type_identity<float>{}, one), errc::refused, "ndim");
        s.flags = abi::flag::read_only;
        expect_error(run(made(s), std::type_identity<float>{}, two), errc::refused, "flags");
        EXPECT_EQ(calls, 0);
        EXPECT_TRUE(run(made(s), std::type_identity<const float>{}, two));
        EXPECT_EQ(std::exchange(calls, 0), 1);
    }
}

TEST(Dispatch, DefaultWindowOnlyReads) {
    spec s = on({});
    s.flags = abi::flag::read_only;
    EXPECT_EQ(where_run(made(s)), "host");
}

template <class T>
spec of(T* data) {
    return {.data = data, .shape = {1}, .type = tenon::dtype_of<T>};
}

TEST(DispatchDtype, PicksTheElementType) {
    float f = 1;
    double d = 2;
    std::int32_t i = 3;
    const auto bytes = [](const tenon::tensor& t) {
        return dispatch_dtype<float, double, std::int32_t>(t, []<class T>(std::type_identity<T>) {
            return static_cast<int>(sizeof(T)) + (std::is_integral_v<T> ? 100 : 0);
        });
    };
    EXPECT_EQ(*bytes(made(of(&f))), 4);
    EXPECT_EQ(*bytes(made(of(&d))), 8);
    EXPECT_EQ(*bytes(made(of(&i))), 104);
    std::int64_t other = 0;
    const auto none = bytes(made(of(&other)));
    expect_error(none, errc::refused, "dtype");
    EXPECT_EQ(none.error().got, abi::type_code::int_);
}

TEST(DispatchDtype, RunsExactlyOne) {
    float f = 1;
    int calls = 0;
    const auto ran = dispatch_dtype<double, float, float, const float>(made(of(&f)), [&](auto) { ++calls; });
    EXPECT_TRUE(ran);
    EXPECT_EQ(calls, 1) << "the first that fits";
    const auto none = dispatch_dtype<double>(made(of(&f)), [&](auto) { ++calls; });
    EXPECT_FALSE(none);
    EXPECT_EQ(calls, 1);
}

TEST(DispatchDtype, ComparesBitsAndLanesToo) {
    float f[4] = {};
    const auto t =
        made({.data = f, .shape = {1}, .type = {abi::type_code::float_, 32, 4}}, {.allow_unknown = true});
    EXPECT_FALSE(dispatch_dtype<float>(t, [](auto) {}));
}

TEST(DispatchDtype, WithDispatchInside) {
    double d[3] = {1, 2, 3};
    const auto t = made({.data = d, .shape = {3}, .type = tenon::dtype_of<double>});
    const auto sum = dispatch_dtype<float, double>(t, [&]<class T>(std::type_identity<T>) {
        return *dispatch<const T, 1>(
            t,
            [](view<const T, 1> v) {
                double total = 0;
                for (const T x : v) total += static_cast<double>(x);
                return total;
            },
            [](device_view<const T, 1>) { return 0.0; });
    });
    ASSERT_TRUE(sum);
    EXPECT_EQ(*sum, 6.0);
}

}  // namespace
