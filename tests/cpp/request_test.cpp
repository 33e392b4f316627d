// tests/cpp/request_test.cpp: each constraint on an argument refuses what does not meet it, and says which
// and why.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include <tenon/tensor/request.hpp>

#include "support.hpp"

namespace {

using namespace tenon_test;
using tenon::check;
using tenon::device;
using tenon::dtype;
using tenon::errc;
using tenon::memory_order;
using tenon::memory_space;
using tenon::request;
namespace abi = tenon::abi;
namespace tc = tenon::abi::type_code;
namespace dc = tenon::abi::device_code;

float memory[24];

spec matrix() { return {.data = memory, .shape = {2, 3}, .strides = ints{3, 1}}; }

TEST(Request, DefaultTakesAnything) {
    for (const auto& where : {device{}, device{dc::cuda, 1}, device{dc::metal, 0}}) {
        spec s = matrix();
        s.where = where;
        s.strides = ints{0, 1};
        s.flags = abi::flag::read_only;
        EXPECT_TRUE(check(made(s), {}));
    }
}

TEST(Request, Writable) {
    EXPECT_TRUE(check(made(matrix()), {.writable = true}));
    spec s = matrix();
    s.flags = abi::flag::read_only;
    expect_error(check(made(s), {.writable = true}), errc::refused, "flags");
    EXPECT_TRUE(check(made(s), {.writable = false}));
    s.flags = abi::flag::is_copied;
    EXPECT_TRUE(check(made(s), {.writable = true}));
}

TEST(Request, WritableElementsMustNotShareMemory) {
    spec s = matrix();
    for (const ints& shared : {ints{0, 1}, ints{1, 1}, ints{3, 0}}) {
        s.strides = shared;
        expect_error(check(made(s), {.writable = true}), errc::refused, "strides");
        EXPECT_TRUE(check(made(s), {.writable = false}));
    }
    s.shape = {3, 0};  // no elements, none shared
    s.strides = ints{0, 1};
    EXPECT_TRUE(check(made(s), {.writable = true}));
    s.shape = {1, 3};
    EXPECT_TRUE(check(made(s), {.writable = true}));
}

TEST(Request, ElementType) {
    const auto t = made(matrix());
    EXPECT_TRUE(check(t, {.type = tenon::dtype_of<float>}));
    const auto expect_unmet = [&t](dtype wanted, const char* sentence) {
        const auto why = check(t, {.type = wanted});
        expect_error(why, errc::refused, "dtype");
        EXPECT_EQ(why.error().message(), sentence);
    };
    expect_unmet(tenon::dtype_of<std::int32_t>,
                 "dtype: another element type is needed (got float32, expected int32)");
    expect_unmet(tenon::dtype_of<double>,
                 "dtype: another element type is needed (got float32, expected float64)");
    expect_unmet(
        {tc::float_, 32, 4},
        "dtype: another element type is needed (got float32, expected dtype(code=2, bits=32, lanes=4))");
}

TEST(Request, Rank) {
    const auto t = made(matrix());
    EXPECT_TRUE(check(t, {.rank = 2}));
    EXPECT_TRUE(check(t, {.rank = -1}));
    for (const std::int32_t rank : {0, 1, 3}) {
        const auto why = check(t, {.rank = rank});
        expect_error(why, errc::refused, "ndim");
        EXPECT_EQ(why.error().got, 2);
        EXPECT_EQ(why.error().wanted, rank);
    }
    EXPECT_TRUE(check(made({.data = memory}), {.rank = 0}));
}

TEST(Request, Device) {
    spec s = matrix();
    s.where = {dc::cuda, 1};
    const auto t = made(s);
    EXPECT_TRUE(check(t, {.device = device{dc::cuda, 1}}));
    auto why = check(t, {.device = device{dc::cuda, 0}});
    expect_error(why, errc::refused, "device");
    EXPECT_EQ(why.error().got, 1);
    EXPECT_EQ(why.error().wanted, 0);
    why = check(t, {.device = device{}});
    expect_error(why, errc::refused, "device");
    EXPECT_EQ(why.error().got, dc::cuda);
    EXPECT_EQ(why.error().wanted, dc::cpu);
}

TEST(Request, MemorySpace) {
    for (const auto& e : tenon::detail::device_table) {
        spec s = matrix();
        s.where = {e.type, 0};
        const auto t = made(s);
        EXPECT_TRUE(check(t, {.space = memory_space::any}));
        EXPECT_EQ(check(t, {.space = memory_space::host}).has_value(), t.device().is_host_accessible())
            << e.name;
        // Pinned and managed memory is the host's and a device's.
        EXPECT_NE(check(t, {.space = memory_space::accelerator}).has_value(), t.device().is_cpu()) << e.name;
    }
    spec s = matrix();
    expect_error(check(made(s), {.space = memory_space::accelerator}), errc::refused, "device");
    s.where = {dc::cuda, 0};
    expect_error(check(made(s), {.space = memory_space::host}), errc::refused, "device");
}

TEST(Request, Order) {
    const auto order = [](const ints& strides, memory_order o) {
        spec s = matrix();
        s.strides = strides;
        return check(made(s), {.order = o});
    };
    EXPECT_TRUE(order({3, 1}, memory_order::c));
    expect_error(order({3, 1}, memory_order::f), errc::refused, "strides");
    EXPECT_TRUE(order({1, 2}, memory_order::f));
    expect_error(order({1, 2}, memory_order::c), errc::refused, "strides");
    expect_error(order({6, 2}, memory_order::c), errc::refused, "strides");
    expect_error(order({6, 2}, memory_order::f), errc::refused, "strides");
    EXPECT_TRUE(order({6, 2}, memory_order::any));
    EXPECT_TRUE(order({3, 1}, memory_order::c_or_f));
    EXPECT_TRUE(order({1, 2}, memory_order::c_or_f));
    expect_error(order({6, 2}, memory_order::c_or_f), errc::refused, "strides");
    expect_error(order({-3, -1}, memory_order::c_or_f), errc::refused, "strides");
}

TEST(Request, ElementTypes) {
    static constexpr dtype numbers[] = {tenon::dtype_of<float>, tenon::dtype_of<double>};
    alignas(8) static unsigned char bytes[64];
    const auto one = [](dtype type, int past = 0) {
        return made({.data = bytes + past, .shape = {2}, .type = type});
    };
    const request on_host{.space = memory_space::host, .types = numbers};
    for (const dtype type : numbers) {
        EXPECT_TRUE(check(one(type), {.types = numbers}));
        EXPECT_TRUE(check(one(type), on_host));
    }
    const auto why = check(one(tenon::dtype_of<int>), on_host);
    expect_error(why, errc::not_taken, "dtype");
    EXPECT_EQ(why.error().message(), "dtype: what is needed is float32 or float64, got int32");
    expect_error(check(one(dtype{tc::float_, 32, 2}), on_host), errc::not_taken, "dtype");
    // What the host is to read must be aligned for the type it has.
    EXPECT_TRUE(check(one(numbers[0], 4), on_host));
    const auto askew = check(one(numbers[1], 4), on_host);
    expect_error(askew, errc::refused, "data");
    EXPECT_EQ(askew.error().got, 4);
    expect_error(check(one(numbers[1], 4), {.kind = dc::cpu, .types = numbers}), errc::refused, "data");
    EXPECT_TRUE(check(one(numbers[1], 4), {.types = numbers}));
    EXPECT_TRUE(check(made({.data = bytes + 4, .shape = {0}, .type = numbers[1]}), on_host));
    // A single type goes before a set.
    EXPECT_TRUE(check(one(tenon::dtype_of<int>), {.type = tenon::dtype_of<int>, .types = numbers}));
}

TEST(Request, KindOfDevice) {
    for (const auto& e : tenon::detail::device_table) {
        spec s = matrix();
        s.where = {e.type, e.type == dc::cpu ? 0 : 3};
        const auto t = made(s);
        for (const auto& other : tenon::detail::device_table) {
            const auto met = check(t, {.kind = other.type});
            const bool both =
                (other.type == dc::cuda && (e.type == dc::cuda_host || e.type == dc::cuda_managed)) ||
                (other.type == dc::rocm && e.type == dc::rocm_host);
            EXPECT_EQ(met.has_value(), e.type == other.type || both) << e.name << " for " << other.name;
            if (met) continue;
            expect_error(met, errc::refused, "device");
            EXPECT_EQ(met.error().got, e.type);
            EXPECT_EQ(met.error().wanted, other.type);
        }
        EXPECT_TRUE(check(t, {.kind = -1}));
    }
}

TEST(Request, Shape) {
    const auto t = made(matrix());
    for (const ints& fits : {ints{}, ints{2, 3}, ints{tenon::any, 3}, ints{2, tenon::any}, ints{-1, -1}})
        EXPECT_TRUE(check(t, {.shape = fits})) << testing::PrintToString(fits);
    struct {
        ints wanted;
        std::int32_t axis;
    } const rows[] = {{{2, 4}, 1}, {{3, 3}, 0}, {{0, 0}, 0}, {{tenon::any, 2}, 1}, {{3, tenon::any}, 0}};
    for (const auto& [wanted, axis] : rows) {
        const auto why = check(t, {.shape = wanted});
        expect_error(why, errc::refused, "shape", axis);
        EXPECT_EQ(why.error().got, axis == 0 ? 2 : 3);
        EXPECT_EQ(why.error().wanted, wanted[static_cast<std::size_t>(axis)]);
    }
    for (const ints& other : {ints{2}, ints{2, 3, 1}, ints{tenon::any}}) {
        const auto why = check(t, {.shape = other});
        expect_error(why, errc::refused, "ndim");
        EXPECT_EQ(why.error().got, 2);
        EXPECT_EQ(why.error().wanted, static_cast<std::int64_t>(other.size()));
    }
}

TEST(Request, Alignment) {
    alignas(64) static float aligned_memory[32];
    spec s = matrix();
    s.data = aligned_memory;
    for (const std::uint32_t bytes : {1U, 4U, 64U}) EXPECT_TRUE(check(made(s), {.alignment = bytes}));
    s.data = aligned_memory + 1;
    EXPECT_TRUE(check(made(s), {.alignment = 4}));
    const auto why = check(made(s), {.alignment = 64});
    expect_error(why, errc::refused, "data");
    EXPECT_EQ(why.error().got, 4);
    // By the offset as well, and not at all where there is nothing.
    s.data = aligned_memory;
    s.byte_offset = 8;
    expect_error(check(made(s), {.alignment = 64}), errc::refused, "data");
    s.byte_offset = 0;
    s.data = aligned_memory + 1;
    s.shape = {0, 3};
    EXPECT_TRUE(check(made(s), {.alignment = 64}));
}

TEST(Request, RefusalsTellTheUserWhatToDo) {
    spec s = matrix();
    s.flags = abi::flag::read_only;
    s.strides = ints{6, 2};
    s.where = {dc::cuda, 0};
    const auto t = made(s);
    for (const request& r :
         {request{.writable = true}, request{.order = memory_order::c}, request{.order = memory_order::f},
          request{.order = memory_order::c_or_f}, request{.space = memory_space::host}}) {
        const auto why = check(t, r);
        ASSERT_FALSE(why);
        EXPECT_NE(why.error().advice, nullptr) << why.error();
    }
}

}  // namespace
