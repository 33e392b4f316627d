// tests/cpp/allocate_test.cpp: fresh memory is aligned, writable, large enough, its own, and refused before
// it is asked for when the description is wrong.

#include <gtest/gtest.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <tenon/memory/allocate.hpp>

#include "../../src/memory/allocation.hpp"

#include "support.hpp"

namespace {

using namespace tenon_test;
using tenon::allocate;
using tenon::errc;
namespace tc = tenon::abi::type_code;

void expect_fresh(const tenon::result<tenon::tensor>& t, const ints& shape, std::int64_t nbytes) {
    ASSERT_TRUE(t) << t.error();
    EXPECT_EQ(to_ints(t->shape()), shape);
    EXPECT_EQ(t->nbytes(), nbytes);
    EXPECT_EQ(t->device(), tenon::device{});
    EXPECT_EQ(t->byte_offset(), 0U);
    EXPECT_NE(t->data(), nullptr);
    EXPECT_TRUE(t->is_aligned_to(64)) << t->data();
    EXPECT_TRUE(t->is_c_contiguous());
    EXPECT_FALSE(t->is_read_only());
    EXPECT_FALSE(t->is_copied());
    std::memset(t->data(), 0xa5, static_cast<std::size_t>(nbytes));  // too little is the sanitizer's to see
}

TEST(Allocate, AlignedAtEverySize) {
    std::vector<tenon::tensor> held;  // so that no block is handed out twice
    for (std::int64_t n = 0; n < 300; ++n) {
        auto t = allocate<std::uint8_t>(n);
        expect_fresh(t, {n}, n);
        held.push_back(std::move(*t));
    }
    for (std::int64_t n = 512; n <= std::int64_t{1} << 24U; n *= 2)
        for (const std::int64_t size : {n - 1, n, n + 1})
            expect_fresh(allocate<std::uint8_t>(size), {size}, size);
}

#if defined(__linux__)
/// What the kernel was told of the memory at an address (its `VmFlags`); empty where it does not say.
std::string told_of(const void* memory) {
    std::ifstream maps("/proc/self/smaps");
    bool inside = false;
    for (std::string line; std::getline(maps, line);) {
        std::uintptr_t from = 0;
        std::uintptr_t to = 0;
        char dash = 0;
        std::istringstream read(line);
        if (read >> std::hex >> from >> dash >> to && dash == '-')
            inside = from <= reinterpret_cast<std::uintptr_t>(memory) &&
                     reinterpret_cast<std::uintptr_t>(memory) < to;
        if (inside && line.starts_with("VmFlags:")) return line + ' ';
    }
    return "";
}

TEST(Allocate, LargeMemoryAsksForLargePages) {
    const int here = 0;
    if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled") || told_of(&here).empty())
        GTEST_SKIP() << "a kernel without large pages, or that does not say what it was told";
    const auto middle = [](const tenon::result<tenon::tensor>& t) {
        return static_cast<const std::byte*>(t->data()) + t->nbytes() / 2;
    };
    for (const std::int64_t size : {std::int64_t{4} << 20U, std::int64_t{100} << 20U}) {
        const auto large = allocate<std::uint8_t>(size);
        ASSERT_TRUE(large);
        EXPECT_NE(told_of(middle(large)).find(" hg "), std::string::npos) << size;
    }
    // A small piece, in a mapping of its own: one of the allocator's may have been part of a large one.
    constexpr std::size_t room = std::size_t{4} << 20U;
    void* const fresh = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(fresh, MAP_FAILED);
    tenon::detail::ask_for_large_pages(fresh, room - 1);
    EXPECT_EQ(told_of(fresh).find(" hg "), std::string::npos);
    munmap(fresh, room);
}
#endif

TEST(Allocate, ByTypeByNameByValue) {
    expect_fresh(allocate<double>({2, 3}), {2, 3}, 48);
    expect_fresh(allocate("bfloat16", {2, 3}), {2, 3}, 12);
    expect_fresh(allocate(tenon::dtype(tc::complex, 128), {2, 3}), {2, 3}, 96);
    expect_fresh(allocate(tenon::dtype(tc::int_, 24, 3), {5}), {5}, 45);
    EXPECT_EQ(allocate<double>({2, 3})->dtype(), tenon::dtype_of<double>);
    EXPECT_EQ(allocate("bfloat16", {})->dtype(), tenon::dtype(tc::bfloat, 16));
}

TEST(Allocate, EveryRank) {
    for (std::size_t rank = 0; rank <= 64; ++rank)
        expect_fresh(allocate<float>(ints(rank, 1)), ints(rank, 1), 4);
}

TEST(Allocate, NoElementsStillHaveAnAddress) {
    expect_fresh(allocate<float>(0), {0}, 0);
    expect_fresh(allocate<float>({3, 0, 2}), {3, 0, 2}, 0);
    expect_fresh(allocate<float>({int64_highest / 4, 0}), {int64_highest / 4, 0}, 0);
    expect_fresh(allocate<float>({int64_highest, 0, int64_highest}), {int64_highest, 0, int64_highest}, 0);
    const auto a = allocate<float>(0);
    const auto b = allocate<float>(0);
    EXPECT_NE(a->data(), b->data()) << "one of its own, even so";
}

TEST(Allocate, PackedSubByteElements) {
    struct {
        const char* type;
        std::int64_t bits;
    } const types[] = {{"float4_e2m1fn", 4}, {"float6_e2m3fn", 6}, {"float6_e3m2fn", 6}};
    for (const auto& type : types)
        for (std::int64_t n = 0; n < 40; ++n) {
            const auto t = allocate(type.type, n);
            expect_fresh(t, {n}, (n * type.bits + 7) / 8);
            EXPECT_FALSE(t->is_subbyte_padded());
        }
}

TEST(Allocate, PaddedSubByteElements) {
    for (const char* type : {"float4_e2m1fn", "float6_e2m3fn"})
        for (std::int64_t n = 0; n < 40; ++n) {
            const auto t = allocate(type, n, true);
            expect_fresh(t, {n}, n);
            EXPECT_TRUE(t->is_subbyte_padded());
        }
}

TEST(Allocate, WhatCannotBe) {
    expect_error(allocate<float>({2, -1}), errc::malformed, "shape", 1);
    expect_error(allocate<float>({0, -1}), errc::malformed, "shape", 1);
    expect_error(allocate<float>({int64_highest, 2}), errc::malformed, "shape");
    expect_error(allocate<float>(int64_highest / 4 + 1), errc::malformed, "shape");
    expect_error(allocate<float>(ints(64, 4)), errc::malformed, "shape");
    expect_error(allocate<float>(ints(65, 1)), errc::refused, "shape");
    expect_error(allocate("float33", 1), errc::refused, "dtype");
    expect_error(allocate("", 1), errc::refused, "dtype");
    expect_error(allocate(tenon::dtype(tc::float_, 0), 1), errc::malformed, "dtype");
    expect_error(allocate(tenon::dtype(tc::float_, 32, 0), 1), errc::malformed, "dtype");
}

TEST(Allocate, OutlivesMoves) {
    auto t = allocate<int>(16);
    ASSERT_TRUE(t);
    std::memset(t->data(), 1, 64);
    std::vector<tenon::tensor> held;
    held.push_back(std::move(*t));
    for (int i = 0; i < 5; ++i) held.push_back(*allocate<int>(16));
    EXPECT_EQ(static_cast<const int*>(held[0].data())[15], 0x01010101);
}

}  // namespace
