// tests/cpp/foreign_test.cpp: a received struct is released exactly once on every path, and described without
// being believed.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

#include <tenon/tensor/managed.hpp>

#include "support.hpp"

namespace {

using namespace tenon_test;
using tenon::errc;
using tenon::foreign;
namespace abi = tenon::abi;

static_assert(!std::is_copy_constructible_v<foreign> && !std::is_copy_assignable_v<foreign>);
static_assert(std::is_nothrow_move_constructible_v<foreign> && std::is_nothrow_move_assignable_v<foreign>);

template <class Fake>
class Foreign : public testing::Test {};
using both = testing::Types<fake_legacy, fake_versioned>;
TYPED_TEST_SUITE(Foreign, both);

float some_float = 1.0F;
spec scalar() { return {.data = &some_float}; }

TYPED_TEST(Foreign, ReleasesWhenItGoes) {
    TypeParam producer(scalar());
    {
        const foreign f(&producer.managed);
        EXPECT_TRUE(f);
        EXPECT_EQ(f.get(), &producer.managed);
        EXPECT_EQ(f.is_versioned(), TypeParam::is_versioned);
        EXPECT_EQ(producer.releases(), 0);
    }
    EXPECT_EQ(producer.releases(), 1);
}

TYPED_TEST(Foreign, ReleasesOnDemandOnce) {
    TypeParam producer(scalar());
    foreign f(&producer.managed);
    f.release();
    EXPECT_EQ(producer.releases(), 1);
    EXPECT_FALSE(f);
    f.release();
    EXPECT_EQ(producer.releases(), 1);
}

TYPED_TEST(Foreign, MovesCarryTheDuty) {
    TypeParam producer(scalar());
    {
        foreign a(&producer.managed);
        foreign b(std::move(a));
        EXPECT_FALSE(a);  // NOLINT: a moved-from one is empty by contract
        EXPECT_EQ(b.is_versioned(), TypeParam::is_versioned);
        foreign c;
        EXPECT_FALSE(c);
        c = std::move(b);
        EXPECT_FALSE(b);  // NOLINT
        EXPECT_EQ(c.get(), &producer.managed);
        EXPECT_EQ(producer.releases(), 0);
    }
    EXPECT_EQ(producer.releases(), 1);
}

TYPED_TEST(Foreign, AssignmentReleasesWhatWasThere) {
    TypeParam first(scalar());
    TypeParam second(scalar());
    foreign a(&first.managed);
    a = foreign(&second.managed);
    EXPECT_EQ(first.releases(), 1);
    EXPECT_EQ(second.releases(), 0);
    a = foreign();
    EXPECT_EQ(second.releases(), 1);
}

TYPED_TEST(Foreign, SelfAssignmentKeepsTheStruct) {
    TypeParam producer(scalar());
    foreign a(&producer.managed);
    foreign& same = a;
    a = std::move(same);
    EXPECT_TRUE(a);
    EXPECT_EQ(producer.releases(), 0);
}

TYPED_TEST(Foreign, DisownedStaysWithTheProducer) {
    TypeParam producer(scalar(), 0);
    foreign a(&producer.managed);
    EXPECT_EQ(a.disown(), &producer.managed);
    EXPECT_FALSE(a);
    EXPECT_EQ(a.disown(), nullptr);
}

TYPED_TEST(Foreign, NullDeleterIsNoDeleter) {
    TypeParam producer(scalar(), 0);
    producer.managed.deleter = nullptr;
    foreign f(&producer.managed);
    f.release();
    EXPECT_FALSE(f);
}

TYPED_TEST(Foreign, DeleterMayFreeTheStruct) {
    using managed = decltype(TypeParam::managed);
    auto* m = static_cast<managed*>(std::calloc(1, sizeof(managed)));
    m->deleter = [](managed* self) { std::free(self); };
    foreign(m).release();  // a read afterwards is the sanitizer's to see
}

TYPED_TEST(Foreign, DeleterMayReenter) {
    // A deleter that drops the same handle again must not run twice.
    using managed = decltype(TypeParam::managed);
    struct state {
        managed m{};
        foreign handle;
        int calls = 0;
    } s;
    s.m.manager_ctx = &s;
    s.m.deleter = [](managed* self) {
        auto* me = static_cast<state*>(self->manager_ctx);
        ++me->calls;
        me->handle.release();
    };
    s.handle = foreign(&s.m);
    s.handle.release();
    EXPECT_EQ(s.calls, 1);
}

TYPED_TEST(Foreign, DescribesWhatWasSaid) {
    spec s = scalar();
    s.shape = {2, 3};
    s.strides = ints{3, 1};
    s.byte_offset = 40;
    s.flags = 3;
    TypeParam producer(s);
    const foreign f(&producer.managed);
    const auto seen = f.describe();
    ASSERT_TRUE(seen);
    EXPECT_EQ(std::memcmp(&seen->tensor, &producer.managed.tensor, sizeof seen->tensor), 0);
    EXPECT_EQ(seen->flags, TypeParam::is_versioned ? 3U : 0U) << "a legacy struct has no flags";
    EXPECT_EQ(seen->version.major, TypeParam::is_versioned ? 1U : 0U);
    EXPECT_EQ(seen->version.minor, TypeParam::is_versioned ? 3U : 0U);
}

TEST(ForeignEmpty, HasNothingToDescribe) {
    EXPECT_FALSE(foreign{}.describe());
    EXPECT_FALSE(foreign{static_cast<abi::managed_tensor*>(nullptr)}.describe());
    EXPECT_FALSE(foreign{static_cast<abi::managed_tensor_versioned*>(nullptr)}.describe());
}

TEST(ForeignVersion, AnyMinorOfOurMajorIsRead) {
    for (const std::uint32_t minor : {0U, 1U, 3U, 4U, 99U, UINT32_MAX}) {
        fake_versioned producer(scalar());
        producer.managed.version.minor = minor;
        const foreign f(&producer.managed);
        const auto seen = f.describe();
        ASSERT_TRUE(seen) << minor;
        EXPECT_EQ(seen->version.minor, minor);
    }
}

TEST(ForeignVersion, OfAnotherMajorNothingBehindTheFlagsIsRead) {
    const page_end page;
    constexpr std::size_t stable = offsetof(abi::managed_tensor_versioned, tensor);
    static int releases;
    releases = 0;
    int rounds = 0;
    for (const std::uint32_t major : {0U, 2U, 3U, 255U, 65537U, 0x80000001U, UINT32_MAX}) {
        // Built elsewhere: the struct does not fit on the page as a whole.
        abi::managed_tensor_versioned whole{};
        whole.version = {major, 1};
        whole.flags = 0;
        whole.deleter = [](abi::managed_tensor_versioned*) { ++releases; };
        void* place = page.last(stable);
        std::memcpy(place, &whole, stable);
        {
            const foreign f(static_cast<abi::managed_tensor_versioned*>(place));
            const auto seen = f.describe();
            expect_error(seen, errc::refused, "version");
            EXPECT_EQ(seen.error().got, major);
            EXPECT_EQ(seen.error().wanted, 1);
        }
        EXPECT_EQ(releases, ++rounds) << "its deleter keeps its place, so it is run";
    }
}

TEST(ForeignName, VersionedStructUnderTheLegacyName) {
    for (const std::uint32_t minor : {0U, 1U, 2U, 3U, 17U})
        for (std::uint64_t flags = 0; flags < 8; ++flags) {
            spec s = scalar();
            s.shape = {2};
            s.flags = flags;
            fake_versioned producer(s, 0);
            producer.managed.version.minor = minor;
            foreign f(static_cast<abi::managed_tensor*>(static_cast<void*>(&producer.managed)));
            const auto seen = f.describe();
            expect_error(seen, errc::malformed, "capsule");
            EXPECT_NE(seen.error().message().find("dltensor_versioned"), std::string::npos);
            f.disown();  // its deleter is not where the name says
        }
}

TEST(ForeignName, LegacyStructUnderTheVersionedName) {
    // At the end of a page: a legacy struct is shorter than a versioned one.
    const page_end page;
    void* place = page.last(sizeof(abi::managed_tensor));
    for (void* data :
         {static_cast<void*>(&some_float), static_cast<void*>(nullptr), address(0x7f0000000000)}) {
        abi::managed_tensor legacy{};
        legacy.tensor.data = data;
        std::memcpy(place, &legacy, sizeof legacy);
        foreign f(static_cast<abi::managed_tensor_versioned*>(place));
        expect_error(f.describe(), errc::refused, "version");
        f.disown();
    }
}

TEST(ForeignName, OrdinaryLegacyStructsAreNotMistaken) {
    // Empty tensors often have null data; small ranks and any plausible shape pointer must pass.
    for (void* data :
         {static_cast<void*>(nullptr), static_cast<void*>(&some_float), address(1), address(0x100000001)}) {
        spec s = scalar();
        s.data = data;
        s.shape = {0, 3};
        fake_legacy producer(s);
        const foreign f(&producer.managed);
        EXPECT_TRUE(f.describe()) << data;
    }
    spec s = scalar();
    s.data = address(1);
    fake_legacy producer(s);
    producer.managed.tensor.shape = nullptr;  // as ndim is 0
    EXPECT_TRUE(foreign(&producer.managed).describe());
}

TEST(ForeignAddress, WhatCannotBeAStructIsNeitherReadNorReleased) {
    for (const std::uintptr_t address : {std::uintptr_t{8}, std::uintptr_t{4088},
#if defined(__x86_64__)
                                         std::uintptr_t{0xffff800000000000}, ~std::uintptr_t{7},
#endif
                                         reinterpret_cast<std::uintptr_t>(&some_float) | 1U}) {
        const foreign versioned(reinterpret_cast<abi::managed_tensor_versioned*>(address));
        const foreign legacy(reinterpret_cast<abi::managed_tensor*>(address));
        for (const foreign* f : {&versioned, &legacy}) {
            const auto seen = f->describe();
            ASSERT_FALSE(seen);
            EXPECT_EQ(seen.error().code, errc::malformed);
            EXPECT_STREQ(seen.error().problem, "the pointer cannot be a managed struct");
        }
    }
}

TEST(ForeignAddress, MisalignedStructIsNotRead) {
    alignas(16) std::byte bytes[sizeof(abi::managed_tensor_versioned) + 16]{};
    for (std::size_t shift = 1; shift < 8; ++shift) {
        foreign versioned(reinterpret_cast<abi::managed_tensor_versioned*>(bytes + shift));
        expect_error(versioned.describe(), errc::malformed, "capsule");
        versioned.disown();
        foreign legacy(reinterpret_cast<abi::managed_tensor*>(bytes + shift));
        expect_error(legacy.describe(), errc::malformed, "capsule");
        legacy.disown();
    }
}

}  // namespace
