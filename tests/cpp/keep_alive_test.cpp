// tests/cpp/keep_alive_test.cpp: what is moved to the heap or bound to a deleter is let go of exactly once,
// also where a constructor or a deleter throws.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tenon/tensor/keep_alive.hpp>

#include "support.hpp"

namespace {

using namespace tenon_test;
using tenon::keep_alive;
namespace detail = tenon::detail;

static_assert(sizeof(keep_alive) == 4 * sizeof(void*), "three words and what it is");

int deletions;
void* last_deleted;

struct stateless {
    void operator()(void* p) const noexcept { ++deletions, last_deleted = p; }
};
struct stateless_thrower {
    void operator()(void* p) const {
        ++deletions, last_deleted = p;
        throw std::runtime_error("a deleter");
    }
};
/// Empty, but not to be made out of nothing: it has to be kept.
struct stateless_but_made {
    explicit stateless_but_made(int) noexcept {}
    void operator()(void* p) const noexcept { ++deletions, last_deleted = p; }
};

class KeepDeleted : public testing::Test {
protected:
    void SetUp() override { deletions = 0, last_deleted = nullptr; }
    void expect_once(const auto& deleter) {
        int x = 0;
        {
            keep_alive k;
            ASSERT_TRUE(detail::keep_deleted(&x, deleter, k));
            const keep_alive moved = std::move(k);
            EXPECT_EQ(deletions, 0);
        }
        EXPECT_EQ(deletions, 1);
        EXPECT_EQ(last_deleted, &x);
    }
};

TEST_F(KeepDeleted, StatelessNeedsNoRoom) {
    expect_once(stateless{});
    int x = 0;
    keep_alive k;
    ASSERT_TRUE(detail::keep_deleted(&x, stateless{}, k));
    EXPECT_EQ(k.subject(), &x) << "the pointer itself is kept";
}

TEST_F(KeepDeleted, FunctionPointer) {
    expect_once(+[](void* p) { ++deletions, last_deleted = p; });
}

TEST_F(KeepDeleted, LambdaThatCaptures) {
    const auto state = std::make_shared<int>(0);
    expect_once([state](void* p) { ++deletions, ++*state, last_deleted = p; });
    EXPECT_EQ(*state, 1);
    EXPECT_EQ(state.use_count(), 1) << "what it captured went with it";
}

TEST_F(KeepDeleted, EmptyButNotDefaultConstructible) { expect_once(stateless_but_made(1)); }

TEST_F(KeepDeleted, MoveOnlyDeleter) {
    int x = 0;
    keep_alive k;
    ASSERT_TRUE(detail::keep_deleted(
        &x, [held = std::make_unique<int>(7)](int* p) { deletions += *held, last_deleted = p; }, k));
    k.reset();
    EXPECT_EQ(deletions, 7);
    EXPECT_EQ(last_deleted, &x);
}

TEST_F(KeepDeleted, ConstPointer) {
    const int x = 0;
    keep_alive k;
    const void* seen = nullptr;
    ASSERT_TRUE(detail::keep_deleted(&x, [&](const int* p) { seen = p; }, k));
    k.reset();
    EXPECT_EQ(seen, &x);
}

TEST_F(KeepDeleted, OneThatThrowsHasNobodyToTell) {
    expect_once(stateless_thrower{});
    deletions = 0;
    expect_once([n = 1](void* p) {
        deletions += n, last_deleted = p;
        throw std::runtime_error("a deleter");
    });
}

TEST_F(KeepDeleted, OnAnotherThread) {
    int x = 0;
    keep_alive k;
    std::thread::id ran_on;
    ASSERT_TRUE(detail::keep_deleted(&x, [&](int*) { ran_on = std::this_thread::get_id(); }, k));
    std::thread other([k = std::move(k)]() mutable { k.reset(); });
    const auto id = other.get_id();
    other.join();
    EXPECT_EQ(ran_on, id);
}

/// A deleter of which every move but the first `good_moves` fails; memory bound to it is given back.
struct reluctant {
    int* calls;
    int* good_moves;
    reluctant(int* c, int* m) : calls(c), good_moves(m) {}
    // NOLINTNEXTLINE(performance-noexcept-move-constructor): it throws
    reluctant(reluctant&& o) : calls(o.calls), good_moves(o.good_moves) {
        if ((*good_moves)-- == 0) throw std::runtime_error("a move");
    }
    void operator()(void*) const { ++*calls; }
};

TEST_F(KeepDeleted, DeleterThatCannotBeMovedRunsAtOnce) {
    for (int moves = 0;; ++moves) {
        ASSERT_LT(moves, 20);
        SCOPED_TRACE(moves);
        int x = 0;
        int calls = 0;
        int good_moves = moves;
        bool done = true;
        {
            keep_alive k;
            try {
                ASSERT_TRUE(detail::keep_deleted(&x, reluctant(&calls, &good_moves), k));
                EXPECT_EQ(calls, 0);
            } catch (const std::runtime_error&) {
                done = false;
                EXPECT_EQ(calls, 1);
            }
        }
        EXPECT_EQ(calls, 1);
        if (done) break;
    }
}

// --- objects on the heap ----------------------------------------------------------------------------

/// Counts how many of it there are.
struct counted {
    static inline int alive = 0;
    bool throws_on_move;
    explicit counted(bool t = false) : throws_on_move(t) { ++alive; }
    // NOLINTNEXTLINE(performance-noexcept-move-constructor): it throws
    counted(counted&& o) : throws_on_move(o.throws_on_move) {
        if (throws_on_move) throw std::runtime_error("a move");
        ++alive;
    }
    ~counted() { --alive; }
};

TEST(KeepMoved, StaysWhereItIs) {
    counted::alive = 0;
    {
        keep_alive k;
        counted source;
        counted* const there = detail::keep_moved(source, k);
        ASSERT_NE(there, nullptr);
        EXPECT_NE(there, &source);
        EXPECT_EQ(counted::alive, 2);
        const keep_alive moved = std::move(k);
        EXPECT_EQ(&static_cast<detail::box<counted>*>(moved.subject())->object, there)
            << "moving what keeps it does not move the object";
        EXPECT_EQ(counted::alive, 2);
    }
    EXPECT_EQ(counted::alive, 0);
}

TEST(KeepMoved, ThrowingMoveLeavesEverythingAsItWas) {
    counted::alive = 0;
    keep_alive k;
    {
        counted source(true);
        EXPECT_THROW((void)detail::keep_moved(source, k), std::runtime_error);
        EXPECT_EQ(counted::alive, 1);
    }
    EXPECT_EQ(counted::alive, 0);
    EXPECT_EQ(k.release_function(), nullptr);
}

TEST(KeepMoved, OverAlignedObjects) {
    struct alignas(256) wide {
        float values[4];
    };
    keep_alive k;
    wide source{{1, 2, 3, 4}};
    wide* const there = detail::keep_moved(source, k);
    ASSERT_NE(there, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(there) % 256, 0U);
    EXPECT_EQ(there->values[3], 4.0F);
}

TEST(KeepMoved, ReplacesWhatWasKept) {
    counted::alive = 0;
    keep_alive k;
    {
        counted first;
        counted second;
        ASSERT_NE(detail::keep_moved(first, k), nullptr);
        ASSERT_NE(detail::keep_moved(second, k), nullptr);
    }
    EXPECT_EQ(counted::alive, 1);
    k.reset();
    EXPECT_EQ(counted::alive, 0);
}

}  // namespace
