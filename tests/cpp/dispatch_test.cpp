// tests/cpp/dispatch_test.cpp: the right function runs for where a tensor lives and for what it is made of,
// once.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/tensor/dispatch.hpp>

#include "support.hpp"

namespace user {
struct nibble {
    std::uint8_t byte;
};
}  // namespace user

template <>
struct tenon::dtype_traits<user::nibble> {
    static constexpr tenon::dtype value{tenon::abi::type_code::int_, 4};
};

namespace {

using namespace tenon_test;
using tenon::device;
using tenon::device_view;
using tenon::dispatch;
using tenon::dispatch_dtype;
using tenon::errc;
using tenon::together;
using tenon::typed;
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
    EXPECT_EQ(where_run(made(on({99, 0}))), "device(99):0");
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

// --- several tensors at once ------------------------------------------------------------------------

/// Where the function ran that was given three of them, by where they are.
std::string where_run(device x, device y, device out) {
    const tenon::tensor tensors[] = {made(on(x)), made(on(y)), made(on(out))};
    const auto ran = dispatch(
        together(typed<const float, 2>(tensors[0]), typed<const float>(tensors[1]), typed<>(tensors[2])),
        [](view<const float, 2>, view<const float>, view<>) { return std::string("host"); },
        [](device_view<const float, 2>, device_view<const float>, device_view<> v) {
            return "device, out on " + v.device_name();
        });
    return ran ? *ran : ran.error().message();
}

constexpr device cpu{};
constexpr device pinned{dc::cuda_host, 0};
constexpr device managed{dc::cuda_managed, 0};
constexpr device gpu{dc::cuda, 0};
constexpr device second_gpu{dc::cuda, 1};
constexpr device amd{dc::rocm, 0};
constexpr device amd_pinned{dc::rocm_host, 0};

TEST(DispatchTogether, WhatTheHostCanReadIsTheHosts) {
    for (const device x : {cpu, pinned, managed, amd_pinned})
        for (const device y : {cpu, pinned, managed, amd_pinned}) EXPECT_EQ(where_run(x, y, x), "host");
}

TEST(DispatchTogether, WhatOneAcceleratorCanReachIsTheDevices) {
    EXPECT_EQ(where_run(gpu, gpu, gpu), "device, out on cuda:0");
    EXPECT_EQ(where_run(second_gpu, second_gpu, second_gpu), "device, out on cuda:1");
    EXPECT_EQ(where_run(amd, amd, amd), "device, out on rocm:0");
    EXPECT_EQ(where_run({dc::metal, 0}, {dc::metal, 0}, {dc::metal, 0}), "device, out on metal:0");
    // Pinned and managed memory is everybody's of that make, wherever the device stands among them.
    EXPECT_EQ(where_run(gpu, managed, pinned), "device, out on cuda_host:0");
    EXPECT_EQ(where_run(pinned, gpu, managed), "device, out on cuda_managed:0");
    EXPECT_EQ(where_run(managed, pinned, second_gpu), "device, out on cuda:1");
    EXPECT_EQ(where_run(amd_pinned, amd, amd), "device, out on rocm:0");
}

TEST(DispatchTogether, WhatIsElsewhereIsNamed) {
    const auto sentence = [](int number, const std::string& got, const std::string& expected) {
        return "tensor " + std::to_string(number) + ": device: not where the others are (got " + got +
               ", expected " + expected + "); move all of them to one device, or all to the CPU";
    };
    EXPECT_EQ(where_run(cpu, gpu, gpu), sentence(1, "cpu", "cuda:0"));
    EXPECT_EQ(where_run(gpu, cpu, gpu), sentence(2, "cpu", "cuda:0"));
    EXPECT_EQ(where_run(gpu, gpu, second_gpu), sentence(3, "cuda:1", "cuda:0"));
    EXPECT_EQ(where_run(managed, amd, amd), sentence(1, "cuda_managed:0", "rocm:0"));
    EXPECT_EQ(where_run(gpu, amd_pinned, gpu), sentence(2, "rocm_host:0", "cuda:0"));
    EXPECT_EQ(where_run(amd, amd, gpu), sentence(3, "cuda:0", "rocm:0"));
    EXPECT_EQ(where_run({dc::metal, 0}, managed, {dc::metal, 0}), sentence(2, "cuda_managed:0", "metal:0"));
}

TEST(DispatchTogether, EachHasItsOwnWindow) {
    double d[3] = {1, 2, 3};
    std::int32_t i[2] = {4, 5};
    const auto a = made({.data = d, .shape = {3}, .type = tenon::dtype_of<double>});
    const auto b = made({.data = i, .shape = {2, 1}, .type = tenon::dtype_of<std::int32_t>});
    int calls = 0;
    const tenon::result<void> ran = dispatch(
        together(typed<double, 1>(a), typed<const std::int32_t, 2>(b)),
        [&](view<double, 1> x, view<const std::int32_t, 2> y) {
            ++calls;
            x(2) += y(1, 0);
        },
        [](device_view<double, 1>, device_view<const std::int32_t, 2>) { FAIL(); });
    EXPECT_TRUE(ran);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(d[2], 8);
}

TEST(DispatchTogether, NothingIsCopied) {
    const auto x = made(on(gpu));
    const auto at = dispatch(
        together(typed<const float, 2>(x), typed<float, 2>(x)),
        [](view<const float, 2>, view<float, 2>) { return false; },
        [](device_view<const float, 2> in, device_view<float, 2> out) {
            return in.data() == memory && out.data() == memory && out.shape(1) == 3;
        });
    ASSERT_TRUE(at);
    EXPECT_TRUE(*at);
}

TEST(DispatchTogether, UnmetConstraintsRunNothingAndNameTheTensor) {
    for (const device where : {cpu, gpu, managed}) {
        const auto good = made(on(where));
        spec s = on(where);
        s.flags = abi::flag::read_only;
        const auto read_only = made(s);
        int calls = 0;
        const auto run = [&](const auto&... tensors) {
            const auto ran = dispatch(together(tensors...), [&](const auto&...) { ++calls; });
            EXPECT_FALSE(ran);
            return ran ? tenon::refused("", "ran") : ran.error();
        };
        using wanted = typed<const float, 2>;
        const auto expect = [](const tenon::error& e, const char* field, int number) {
            expect_error(e, errc::refused, field);
            EXPECT_EQ(e.which, number);
        };
        expect(run(wanted(good), typed<const double, 2>(good)), "dtype", 2);
        expect(run(typed<const float, 1>(good), wanted(good)), "ndim", 1);
        expect(run(wanted(good), wanted(good), typed<float, 2>(read_only)), "flags", 3);
        expect(run(typed<const float, 3>(good), typed<float>(read_only)), "ndim", 1);
        EXPECT_EQ(calls, 0);
    }
}

TEST(DispatchTogether, PackedElementsHaveNoAddressAnywhere) {
    for (const device where : {cpu, gpu, managed}) {
        spec s{.data = memory, .shape = {4}, .type = {abi::type_code::int_, 4}, .where = where};
        const auto any = [](const auto& window) { return window.size(); };
        const auto packed = made(s);
        expect_error(dispatch(together(typed<const user::nibble, 1>(packed)), any), errc::refused, "dtype");
        EXPECT_EQ(*dispatch(together(typed<const void, 1>(packed)), any), 4);
        s.flags = abi::flag::subbyte_padded;
        const auto padded = made(s);
        EXPECT_EQ(*dispatch(together(typed<const user::nibble, 1>(padded)), any), 4);
    }
}

TEST(DispatchTogether, FunctionsMayBeMoveOnlyAndReturnMoveOnly) {
    const auto t = made(on(cpu));
    auto token = std::make_unique<int>(5);
    auto out = dispatch(
        together(typed<>(t), typed<>(t)),
        [token = std::move(token)](view<>, view<>) mutable { return std::move(token); },
        [](device_view<>, device_view<>) { return std::unique_ptr<int>(); });
    ASSERT_TRUE(out);
    EXPECT_EQ(**out, 5);
}

/// Whatever converts to a tensor_ref and says what it is joins in: an array does.
struct bound_argument {
    using element_type = const float;
    static constexpr int rank = 2;
    const tenon::tensor& tensor;
    operator const tenon::tensor_ref&() const { return tensor; }
};

TEST(DispatchTogether, TakesWhateverSaysItsWindow) {
    const auto t = made(on(cpu));
    const auto extent = [](const auto& a, const auto& b) { return a.shape(1) + b.shape(0); };
    EXPECT_EQ(*dispatch(together(bound_argument{t}, typed<float, 2>(t)), extent), 5);
}

template <class... Args>
concept can_be_together = requires(const Args&... args) { together(args...); };
static_assert(can_be_together<typed<>, bound_argument>);
static_assert(!can_be_together<tenon::tensor> && !can_be_together<view<>> && !can_be_together<>);

// --- element types ----------------------------------------------------------------------------------

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
    expect_error(none, errc::not_taken, "dtype");
    EXPECT_EQ(none.error().message(), "dtype: this function takes float32, float64 or int32, got int64");
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
    const auto t = made({.data = f, .shape = {1}, .type = {abi::type_code::float_, 32, 4}});
    EXPECT_FALSE(dispatch_dtype<float>(t, [](auto) {}));
}

TEST(DispatchDtype, ARefusalKnowsItsTensor) {
    std::int16_t i = 1;
    const auto t = made(of(&i)), other = made(of(&i));
    const auto none = dispatch_dtype<float>(t, [](auto) {});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().message(), "dtype: this function takes float32, got int16");
    EXPECT_EQ(none.error().about, t.shape().data());
    EXPECT_NE(none.error().about, other.shape().data());
    EXPECT_EQ(view<float>::from(t).error().about, t.shape().data());
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
