// tests/cpp/phrase_test.cpp: a request in words says everything: no two are said alike.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/bind/phrase.hpp>
#include <tenon/bind/place.hpp>

#include "support.hpp"

namespace {

using namespace tenon_test;
using tenon::any;
using tenon::dtype;
using tenon::memory_order;
using tenon::memory_space;
using tenon::request;
using tenon::bind::conversions;
using tenon::bind::spell;
namespace dc = tenon::abi::device_code;
namespace tc = tenon::abi::type_code;

std::string said(const request& r, conversions converts = conversions::none) {
    return std::string(spell(r, converts).view());
}

TEST(Phrase, SaysWhatIsAsked) {
    constexpr auto host = memory_space::host;
    const ints rows{any, 3}, exact{2, 0};
    EXPECT_EQ(said({.space = host}), "any[...]");
    EXPECT_EQ(said({}), "any[...] on any device");
    EXPECT_EQ(said({.type = tenon::dtype_of<float>, .rank = 2, .space = host}), "float32[*, *]");
    EXPECT_EQ(said({.type = tenon::dtype_of<double>, .rank = 0, .space = host}), "float64[]");
    EXPECT_EQ(said({.rank = 2, .space = host, .shape = rows}), "any[*, 3]");
    EXPECT_EQ(said({.rank = 2, .space = host, .shape = exact}), "any[2, 0]");
    EXPECT_EQ(said({.rank = 1, .kind = dc::cuda}), "any[*] on cuda");
    EXPECT_EQ(said({.rank = 1, .space = host, .writable = true}), "writable any[*]");
    EXPECT_EQ(said({.rank = 1, .space = host, .order = memory_order::c}), "C-contiguous any[*]");
    EXPECT_EQ(said({.rank = 1, .space = host, .order = memory_order::f, .writable = true}),
              "writable F-contiguous any[*]");
    EXPECT_EQ(said({.rank = 1, .space = host, .order = memory_order::c_or_f}), "contiguous any[*]");
    EXPECT_EQ(said({.rank = 1, .space = host, .alignment = 64}), "any[*], aligned to 64 bytes");
    EXPECT_EQ(said({.rank = 1, .space = host}, conversions::safe), "any[*], or convertible");
    EXPECT_EQ(said({.rank = 1, .space = host}, conversions::narrowing),
              "any[*], or convertible with narrowing");
    EXPECT_EQ(said({.rank = 1, .space = host}, conversions::lossy), "any[*], or convertible with loss");
    EXPECT_EQ(said({.type = dtype{tc::float_, 32, 4}, .rank = 1, .space = host}), "dtype(2,32,4)[*]");
}

TEST(Phrase, SaysSetsOfElementTypes) {
    static constexpr dtype numbers[] = {tenon::dtype_of<float>, tenon::dtype_of<double>, {tc::float_, 32, 4}};
    const std::span<const dtype> two(numbers, 2);
    constexpr auto host = memory_space::host;
    EXPECT_EQ(said({.rank = 2, .space = host, .types = two}), "float32|float64[*, *]");
    EXPECT_EQ(said({.rank = 1, .space = host, .types = numbers}), "float32|float64|dtype(2,32,4)[*]");
    EXPECT_EQ(said({.rank = 1, .space = host, .order = memory_order::c, .writable = true, .types = two}),
              "writable C-contiguous float32|float64[*]");
    // What the smaller one needs is not said.
    EXPECT_EQ(said({.rank = 1, .space = host, .alignment = 4, .types = two}), "float32|float64[*]");
    EXPECT_EQ(said({.rank = 1, .space = host, .alignment = 8, .types = two}),
              "float32|float64[*], aligned to 8 bytes");
}

TEST(Phrase, DoesNotSayTheAlignmentThatElementsHaveAnyway) {
    request r{.type = tenon::dtype_of<double>, .rank = 1, .space = memory_space::host, .alignment = 8};
    EXPECT_EQ(said(r), "float64[*]");
    r.alignment = 16;
    EXPECT_EQ(said(r), "float64[*], aligned to 16 bytes");
    // On an accelerator nothing is read by plain code: there none is needed unless it is said.
    request there{.type = tenon::dtype_of<double>, .rank = 1, .kind = dc::cuda, .alignment = 1};
    EXPECT_EQ(said(there), "float64[*] on cuda");
    there.alignment = 8;
    EXPECT_EQ(said(there), "float64[*] on cuda, aligned to 8 bytes");
}

TEST(Phrase, EveryDeviceHasATagOfItsName) {
    using tenon::bind::kind_of;
    static_assert(kind_of<int> == -1 && !tenon::bind::is_place<int>);
    static_assert(tenon::any_device::device_kind == -1 && tenon::bind::is_place<tenon::any_device>);
    const std::map<std::string_view, std::int32_t> tags{
        {"cpu", kind_of<tenon::cpu>},
        {"cuda", kind_of<tenon::cuda>},
        {"cuda_host", kind_of<tenon::cuda_host>},
        {"cuda_managed", kind_of<tenon::cuda_managed>},
        {"rocm", kind_of<tenon::rocm>},
        {"rocm_host", kind_of<tenon::rocm_host>},
        {"opencl", kind_of<tenon::opencl>},
        {"vulkan", kind_of<tenon::vulkan>},
        {"metal", kind_of<tenon::metal>},
        {"vpi", kind_of<tenon::vpi>},
        {"ext_dev", kind_of<tenon::ext_dev>},
        {"oneapi", kind_of<tenon::oneapi>},
        {"webgpu", kind_of<tenon::webgpu>},
        {"hexagon", kind_of<tenon::hexagon>},
        {"maia", kind_of<tenon::maia>},
        {"trn", kind_of<tenon::trn>},
        {"tpu", kind_of<tenon::tpu>},
        {"tpu_host", kind_of<tenon::tpu_host>},
        {"ascend", kind_of<tenon::ascend>},
    };
    for (const auto& entry : tenon::detail::device_table) {
        ASSERT_TRUE(tags.contains(entry.name)) << entry.name;
        EXPECT_EQ(tags.at(entry.name), entry.type) << entry.name;
    }
    EXPECT_EQ(tags.size(), std::size(tenon::detail::device_table));
}

TEST(Phrase, IsMadeAtCompileTime) {
    constexpr auto phrase = spell({.type = tenon::dtype_of<float>, .rank = 1, .space = memory_space::host});
    static_assert(phrase.view() == "float32[*]");
    EXPECT_EQ(phrase.size, 10U);
}

/// Every request that an `array` can state, and what else there is.
template <class Fn>
void for_each_request(Fn&& fn) {
    const std::vector<ints> shapes{
        {}, {any}, {0}, {any, 3}, {2, any, int64_highest}, ints(64, int64_highest)};
    std::vector<std::optional<dtype>> types{std::nullopt, dtype{tc::float_, 32, 4}, dtype{200, 7, 65535}};
    for (const auto& entry : tenon::detail::dtype_table) types.emplace_back(entry.type);
    struct place {
        memory_space space;
        std::int32_t kind;
    };
    std::vector<place> places{{memory_space::host, -1}, {memory_space::any, -1}};
    for (const auto& entry : tenon::detail::device_table) places.push_back({memory_space::any, entry.type});
    for (const auto& type : types) {
        for (const ints& shape : shapes) {
            for (const place& where : places) {
                if (shape.size() == 64 && (type || where.kind > dc::cpu)) continue;  // takes long
                for (const std::uint32_t alignment : {1U, 2U, 4096U}) {
                    for (int bits = 0; bits < 32; ++bits) {
                        request r{.type = type,
                                  .rank = static_cast<std::int32_t>(shape.size()),
                                  .space = where.space,
                                  .order = static_cast<memory_order>(bits % 4),
                                  .writable = bits / 4 % 2 != 0,
                                  .kind = where.kind,
                                  .shape = shape};
                        if (shape.empty() && alignment == 1) r.rank = -1;
                        r.alignment = std::max(alignment, tenon::bind::natural_alignment(r));
                        fn(r, static_cast<conversions>(bits / 8));
                    }
                }
            }
        }
    }
}

TEST(Phrase, ThereIsRoomForEveryRequestAndNoTwoAreSaidAlike) {
    std::map<std::string, std::string> seen;  // what is said, and all the fields of what it is said of
    std::size_t count = 0;
    for_each_request([&](const request& r, conversions converts) {
        const auto phrase = spell(r, converts);
        ASSERT_LT(phrase.size, tenon::bind::phrase::capacity) << phrase.view();
        const dtype type = r.type.value_or(dtype{});
        std::string fields;
        for (const std::int64_t number :
             {std::int64_t{r.type.has_value()}, std::int64_t{type.code}, std::int64_t{type.bits},
              std::int64_t{type.lanes}, std::int64_t{r.rank}, static_cast<std::int64_t>(r.space),
              static_cast<std::int64_t>(r.order), std::int64_t{r.writable}, std::int64_t{r.kind},
              std::int64_t{r.alignment}, static_cast<std::int64_t>(converts)})
            fields += std::to_string(number) + " ";
        for (const std::int64_t extent : r.shape) fields += std::to_string(extent) + " ";
        const auto [at, is_new] = seen.emplace(phrase.view(), fields);
        ASSERT_TRUE(is_new || at->second == fields) << phrase.view();
        ++count;
    });
    EXPECT_GT(count, 50'000U);
}

TEST(Phrase, IsKeptAsLongAsItIs) {
    constexpr auto phrase = spell({.type = tenon::dtype_of<float>, .rank = 1, .space = memory_space::host});
    constexpr tenon::bind::words<phrase.size> kept(phrase);
    static_assert(kept.view() == "float32[*]" && sizeof kept == 11);
    EXPECT_STREQ(kept.text, "float32[*]");
}

}  // namespace
