// tests/cpp/executable_test.cpp: functions of libraries and of run time are told from data.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "../../src/memory/addresses.hpp"
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace {

using tenon::detail::are_executable;

int a_function(int x) { return x + 1; }

const void* address_of(int (*function)(int)) { return reinterpret_cast<const void*>(function); }

TEST(Executable, FunctionsAre) {
    const void* const ours[] = {address_of(a_function), reinterpret_cast<const void*>(&std::malloc)};
    EXPECT_TRUE(are_executable(ours));
    const void* const some[] = {nullptr, address_of(a_function), nullptr, address_of(a_function)};
    EXPECT_TRUE(are_executable(some));
    EXPECT_TRUE(are_executable({}));
    const void* const none[] = {nullptr, nullptr};
    EXPECT_TRUE(are_executable(none));
}

#if defined(__linux__)

TEST(Executable, DataIsNot) {
    static int known = 1;
    int on_the_stack = 2;
    const std::vector<int> on_the_heap(4);
    for (const void* data : {static_cast<const void*>(&known), static_cast<const void*>(&on_the_stack),
                             static_cast<const void*>(on_the_heap.data()), reinterpret_cast<const void*>(8),
                             reinterpret_cast<const void*>(~std::uintptr_t{7})}) {
        const void* const alone[] = {data};
        EXPECT_FALSE(are_executable(alone));
        const void* const among[] = {address_of(a_function), data, address_of(a_function)};
        EXPECT_FALSE(are_executable(among));
    }
}

TEST(Executable, MemoryMadeSoAtRunTimeIs) {
    void* const page = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) GTEST_SKIP() << "the system allows none";
    const void* const first[] = {page};
    EXPECT_TRUE(are_executable(first));
    const void* const last[] = {static_cast<const char*>(page) + 4095};
    EXPECT_TRUE(are_executable(last));
    ASSERT_EQ(mprotect(page, 4096, PROT_READ), 0);
    EXPECT_FALSE(are_executable(first));
    munmap(page, 4096);
}

#endif

}  // namespace
