// tests/cpp/tensor_test.cpp: ownership of a taken tensor: released once on every path, metadata its own,
// moves at every rank.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/tensor/tensor.hpp>

#include "support.hpp"

namespace {

using namespace tenon_test;
using tenon::errc;
using tenon::foreign;
using tenon::keep_alive;
using tenon::tensor;
namespace abi = tenon::abi;

static_assert(!std::is_copy_constructible_v<tensor> && !std::is_copy_assignable_v<tensor>);
static_assert(std::is_nothrow_move_constructible_v<tensor> && std::is_nothrow_move_assignable_v<tensor>);
static_assert(std::is_nothrow_default_constructible_v<tensor> &&
              !std::is_default_constructible_v<tenon::tensor_ref>);
static_assert(!std::is_copy_constructible_v<keep_alive> && std::is_nothrow_move_constructible_v<keep_alive>);

float memory[16];

spec of_rank(std::size_t rank) {
    spec s{.data = memory, .shape = ints(rank, 1), .strides = ints(rank)};
    for (std::size_t i = 0; i < rank; ++i) (*s.strides)[i] = static_cast<std::int64_t>(100 + i);
    if (rank > 0) s.shape.back() = 4, s.strides->back() = 1;
    return s;
}

// --- keep_alive -------------------------------------------------------------------------------------

struct tally {
    int calls = 0;
    void* context = nullptr;
    static void on_release(void* subject, void* context) noexcept {
        auto* me = static_cast<tally*>(subject);
        ++me->calls;
        me->context = context;
    }
};

TEST(KeepAlive, ReleasesOnceWithItsContext) {
    tally t;
    int context = 0;
    {
        const keep_alive k(&t, tally::on_release, &context);
        EXPECT_EQ(k.subject(), &t);
        EXPECT_EQ(k.release_function(), &tally::on_release);
        EXPECT_EQ(t.calls, 0);
    }
    EXPECT_EQ(t.calls, 1);
    EXPECT_EQ(t.context, &context);
}

TEST(KeepAlive, MovesAssignmentsResetsAndDisowning) {
    tally t;
    tally u;
    {
        keep_alive a(&t, tally::on_release);
        keep_alive b(std::move(a));
        a.reset();  // NOLINT: empty by contract
        EXPECT_EQ(t.calls, 0);
        keep_alive c(&u, tally::on_release);
        c = std::move(b);
        EXPECT_EQ(u.calls, 1);
        EXPECT_EQ(c.subject(), &t);
        keep_alive& same = c;
        c = std::move(same);
        EXPECT_EQ(t.calls, 0);
        c.reset();
        c.reset();
        EXPECT_EQ(t.calls, 1);
    }
    EXPECT_EQ(t.calls, 1);
    keep_alive gone(&u, tally::on_release);
    gone.disown();
    gone.reset();
    EXPECT_EQ(u.calls, 1);
    keep_alive empty;
    empty.reset();
}

// --- taking -----------------------------------------------------------------------------------------

template <class Fake>
class Take : public testing::Test {};
using both = testing::Types<fake_legacy, fake_versioned>;
TYPED_TEST_SUITE(Take, both);

TYPED_TEST(Take, MovesTheDutyFromForeignToTensor) {
    TypeParam producer(of_rank(2));
    {
        foreign received(&producer.managed);
        auto t = tensor::take(received);
        ASSERT_TRUE(t) << t.error();
        EXPECT_FALSE(received);
        received.release();
        EXPECT_EQ(producer.releases(), 0);
        EXPECT_EQ(t->owner().subject(), &producer.managed);
        EXPECT_EQ(t->version().major, TypeParam::is_versioned ? 1U : 0U);
        EXPECT_EQ(t->version().minor, TypeParam::is_versioned ? 3U : 0U);
    }
    EXPECT_EQ(producer.releases(), 1);
}

TYPED_TEST(Take, RefusedStaysWithForeign) {
    spec s = of_rank(2);
    s.type = {99, 0};
    TypeParam producer(s);
    foreign received(&producer.managed);
    EXPECT_FALSE(tensor::take(received));
    EXPECT_TRUE(received);
    EXPECT_EQ(producer.releases(), 0);
    // Nothing was spoilt: when it is mended, it may still be had.
    producer.managed.tensor.dtype.bits = 8;
    const auto t = tensor::take(received);
    ASSERT_TRUE(t);
    EXPECT_FALSE(received);
    EXPECT_EQ(producer.releases(), 0);
}

TYPED_TEST(Take, RefusedMayGoBackToTheProducer) {
    spec s = of_rank(1);
    s.shape = {-1};
    TypeParam producer(s, 0);
    foreign received(&producer.managed);
    EXPECT_FALSE(tensor::take(received));
    EXPECT_EQ(received.disown(), &producer.managed);
}

TYPED_TEST(Take, NullDeleterIsFine) {
    TypeParam producer(of_rank(1), 0);
    producer.managed.deleter = nullptr;
    foreign received(&producer.managed);
    const auto t = tensor::take(received);
    EXPECT_TRUE(t);
}

TYPED_TEST(Take, ReleasesEvenWhereDataIsNull) {
    TypeParam producer({.data = nullptr, .shape = {0}});
    foreign received(&producer.managed);
    EXPECT_TRUE(tensor::take(received));
}

TYPED_TEST(Take, SecondTakeFindsNothing) {
    TypeParam producer(of_rank(1));
    foreign received(&producer.managed);
    const auto first = tensor::take(received);
    ASSERT_TRUE(first);
    EXPECT_FALSE(tensor::take(received));
    EXPECT_EQ(producer.releases(), 0);
}

TYPED_TEST(Take, DisowningUndoesIt) {
    TypeParam producer(of_rank(1), 0);
    foreign received(&producer.managed);
    auto t = tensor::take(received);
    ASSERT_TRUE(t);
    t->disown();
}

TYPED_TEST(Take, WithAnOwnerOfOnesOwn) {
    TypeParam producer(of_rank(1), 0);  // the bare deleter must not run: the owner stands for it
    tally owner;
    {
        foreign received(&producer.managed);
        keep_alive keeper(&owner, tally::on_release, &producer);
        const auto t = tensor::take_as(received, keeper);
        ASSERT_TRUE(t);
        EXPECT_FALSE(received);
        EXPECT_EQ(keeper.release_function(), nullptr);
    }
    EXPECT_EQ(owner.calls, 1);
    EXPECT_EQ(owner.context, &producer);
}

TYPED_TEST(Take, RefusedLeavesBothForeignAndOwner) {
    spec s = of_rank(1);
    s.shape = {-1};
    TypeParam producer(s);
    tally owner;
    {
        foreign received(&producer.managed);
        keep_alive keeper(&owner, tally::on_release);
        EXPECT_FALSE(tensor::take_as(received, keeper));
        EXPECT_TRUE(received);
        EXPECT_EQ(keeper.release_function(), &tally::on_release);
        EXPECT_EQ(owner.calls, 0);
    }
    EXPECT_EQ(owner.calls, 1);
    EXPECT_EQ(producer.releases(), 1);
}

TEST(TakeVersioned, OfAnotherMajorOnlyTheDeleterRuns) {
    const page_end page;
    constexpr std::size_t stable = offsetof(abi::managed_tensor_versioned, tensor);
    static int releases;
    releases = 0;
    abi::managed_tensor_versioned whole{};
    whole.version = {2, 0};
    whole.deleter = [](abi::managed_tensor_versioned*) { ++releases; };
    std::memcpy(page.last(stable), &whole, stable);
    {
        foreign received(static_cast<abi::managed_tensor_versioned*>(page.last(stable)));
        expect_error(tensor::take(received), errc::refused, "version");
        EXPECT_EQ(releases, 0);
    }
    EXPECT_EQ(releases, 1);
}

TEST(TakeLegacy, AVersionedStructUnderTheLegacyNameIsNeverTaken) {
    for (const bool has_deleter : {true, false})
        for (void* context : {static_cast<void*>(nullptr), address(2), address(0x100000001)}) {
            spec s = of_rank(2);
            fake_versioned producer(s, 0);
            producer.managed.manager_ctx = context;
            if (!has_deleter) producer.managed.deleter = nullptr;
            foreign received(static_cast<abi::managed_tensor*>(static_cast<void*>(&producer.managed)));
            EXPECT_FALSE(tensor::take(received));
            EXPECT_EQ(received.disown(), &producer.managed);
        }
}

TEST(Adopt, RefusalLeavesTheOwner) {
    tally owner;
    keep_alive keeper(&owner, tally::on_release);
    spec s = of_rank(6);
    s.shape[3] = -1;
    EXPECT_FALSE(tensor::adopt(describe(s), 0, {1, 3}, keeper));
    EXPECT_EQ(owner.calls, 0);
    EXPECT_EQ(keeper.release_function(), &tally::on_release);
}

TEST(Keep, BindsACheckedTensorToAnOwner) {
    for (std::size_t rank = 0; rank <= 64; ++rank) {
        SCOPED_TRACE(rank);
        tally owner;
        {
            keep_alive keeper(&owner, tally::on_release);
            spec said = of_rank(rank);
            said.flags = abi::flag::read_only;
            said.byte_offset = 0;
            auto source = import(said);
            ASSERT_TRUE(source);
            const tenon::tensor_ref& checked = *source;
            std::optional<tensor> kept;
            ASSERT_TRUE(tensor::keep(checked, keeper, kept));
            ASSERT_TRUE(kept);
            EXPECT_EQ(keeper.release_function(), nullptr);
            source = tenon::refused("", "gone");  // its arrays go with it
            const tensor t = std::move(*kept);
            EXPECT_EQ(to_ints(t.shape()), said.shape);
            EXPECT_EQ(to_ints(t.strides()), *said.strides);
            EXPECT_EQ(t.size(), rank == 0 ? 1 : 4);
            EXPECT_EQ(t.data(), memory);
            EXPECT_TRUE(t.is_read_only());
            EXPECT_EQ(t.version().minor, 3U);
            EXPECT_EQ(owner.calls, 0);
        }
        EXPECT_EQ(owner.calls, 1);
    }
}

// --- metadata ---------------------------------------------------------------------------------------

TEST(TensorMetadata, IsASnapshot) {
    for (const std::size_t rank : {std::size_t{2}, std::size_t{7}}) {
        const spec said = of_rank(rank);
        fake_versioned producer(said);
        foreign received(&producer.managed);
        const auto t = tensor::take(received);
        ASSERT_TRUE(t);
        producer.said().shape.assign(rank, -1);
        producer.said().strides->assign(rank, int64_lowest);
        producer.managed.tensor.ndim = 1000;
        producer.managed.tensor.data = nullptr;
        producer.managed.tensor.dtype.bits = 0;
        producer.managed.flags = 7;
        EXPECT_EQ(to_ints(t->shape()), said.shape);
        EXPECT_EQ(to_ints(t->strides()), *said.strides);
        EXPECT_EQ(t->data(), memory);
        EXPECT_EQ(t->dtype(), said.type);
        EXPECT_FALSE(t->is_read_only());
    }
}

TEST(TensorMetadata, SurvivesMovesAtEveryRank) {
    for (std::size_t rank = 0; rank <= 64; ++rank) {
        SCOPED_TRACE(rank);
        const spec said = of_rank(rank);
        fake_versioned producer(said);
        foreign received(&producer.managed);
        auto taken = tensor::take(received);
        ASSERT_TRUE(taken) << taken.error();

        const auto expect_intact = [&](const tensor& t) {
            ASSERT_EQ(t.ndim(), static_cast<std::int32_t>(rank));
            EXPECT_EQ(to_ints(t.shape()), said.shape);
            EXPECT_EQ(to_ints(t.strides()), *said.strides);
            EXPECT_EQ(t.size(), rank == 0 ? 1 : 4);
            EXPECT_EQ(t.data(), memory);
            EXPECT_EQ(producer.releases(), 0);
        };
        expect_intact(*taken);
        std::vector<tensor> shelf;
        shelf.push_back(std::move(*taken));
        taken = tenon::refused("", "gone");  // the object it was moved from dies
        expect_intact(shelf[0]);
        for (int i = 0; i < 3; ++i) shelf.push_back(made(of_rank(64U - rank)));  // forces reallocation
        expect_intact(shelf[0]);

        // Assignment over a tensor of another rank, inline over heap and heap over inline.
        tensor other = made(of_rank(64U - rank));
        other = std::move(shelf[0]);
        expect_intact(other);
        tensor& same = other;
        other = std::move(same);
        expect_intact(other);
        std::swap(other, shelf[1]);
        expect_intact(shelf[1]);
        EXPECT_EQ(other.ndim(), static_cast<std::int32_t>(64U - rank));
    }
}

TEST(TensorMetadata, OfNoneIsEmpty) {
    tensor t;
    EXPECT_TRUE(t.empty() && t.ndim() == 0 && t.data() == nullptr && !t.owner());
    t = tensor();
    EXPECT_EQ(t.share().value().size(), 0);
}

TEST(TensorMetadata, MovedFromIsEmptyAndHarmless) {
    tensor a = made(of_rank(6));
    tensor b = std::move(a);
    EXPECT_EQ(a.ndim(), 0);  // NOLINT: empty by contract
    EXPECT_EQ(a.size(), 0);
    EXPECT_TRUE(a.shape().empty());
    EXPECT_EQ(a.data(), nullptr);
    a = std::move(b);
    EXPECT_EQ(a.ndim(), 6);
    b = std::move(a);
    EXPECT_EQ(b.ndim(), 6);
}

TEST(TensorMove, AssignmentReleasesWhatWasThere) {
    fake_versioned first(of_rank(2));
    fake_legacy second(of_rank(7));
    foreign a(&first.managed);
    foreign b(&second.managed);
    auto x = tensor::take(a);
    auto y = tensor::take(b);
    ASSERT_TRUE(x && y);
    *x = std::move(*y);
    EXPECT_EQ(first.releases(), 1);
    EXPECT_EQ(second.releases(), 0);
    y = tenon::refused("", "gone");
    EXPECT_EQ(second.releases(), 0);
    x = tenon::refused("", "gone");
    EXPECT_EQ(second.releases(), 1);
}

TEST(TensorFlags, CanBeTightened) {
    tensor t = made(of_rank(1));
    EXPECT_FALSE(t.is_read_only());
    t.set_read_only();
    EXPECT_TRUE(t.is_read_only());
    EXPECT_FALSE(t.is_copied());
    const tensor moved = std::move(t);
    EXPECT_TRUE(moved.is_read_only());
}

}  // namespace
