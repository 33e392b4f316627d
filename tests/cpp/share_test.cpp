// tests/cpp/share_test.cpp: tensors that share their memory: it is given back once, when the last is gone.

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <tenon/tensor/tensor.hpp>

#include "allocations.hpp"
#include "support.hpp"

namespace {

using namespace tenon_test;
using tenon::errc;
using tenon::tensor;

/// A tensor whose deleter counts.
tensor counted(int& releases) {
    static float memory[6] = {0, 1, 2, 3, 4, 5};
    return tensor::own(memory, {2, 3}, [&releases](float*) { ++releases; }).value();
}

TEST(Share, ShowsTheSame) {
    int releases = 0;
    tensor a = counted(releases);
    const tensor b = a.share().value();
    EXPECT_EQ(b.data(), a.data());
    EXPECT_EQ(to_ints(b.shape()), (ints{2, 3}));
    EXPECT_EQ(to_ints(b.strides()), (ints{3, 1}));
    EXPECT_NE(b.shape().data(), a.shape().data()) << "its shape must outlive the other";
    EXPECT_EQ(b.dtype(), a.dtype());
    EXPECT_EQ(b.is_read_only(), a.is_read_only());
}

TEST(Share, TheLastGivesItBack) {
    for (const bool first_goes_first : {true, false}) {
        int releases = 0;
        std::optional<tensor> a(counted(releases));
        std::optional<tensor> b(a->share().value());
        (first_goes_first ? a : b).reset();
        EXPECT_EQ(releases, 0);
        const tensor& left = first_goes_first ? *b : *a;
        EXPECT_EQ(static_cast<float*>(left.data())[5], 5.0F);
        EXPECT_EQ(to_ints(left.shape()), (ints{2, 3}));
        (first_goes_first ? b : a).reset();
        EXPECT_EQ(releases, 1);
    }
}

TEST(Share, AProducersStructIsReleasedOnce) {
    fake_versioned producer({.data = nullptr, .shape = {0}});
    tenon::foreign received(&producer.managed);
    {
        tensor a = tensor::take(received).value();
        const tensor b = a.share().value();
        const tensor c = a.share().value();
        EXPECT_EQ(producer.releases(), 0);
    }
    EXPECT_EQ(producer.releases(), 1);
}

TEST(Share, NobodyNeedsToBeKept) {
    tensor a = made({.data = nullptr, .shape = {0}});
    tensor b = a.share().value();
    EXPECT_TRUE(b.share().has_value());
}

TEST(Share, OnAnotherThread) {
    int releases = 0;
    {
        tensor a = counted(releases);
        std::vector<tensor> shares;
        shares.reserve(64);
        for (int i = 0; i < 64; ++i) shares.push_back(a.share().value());
        std::vector<std::thread> threads;
        threads.reserve(shares.size());
        for (tensor& t : shares)
            threads.emplace_back([mine = std::move(t)]() mutable { const tensor gone = std::move(mine); });
        for (std::thread& t : threads) t.join();
        threads.clear();
        EXPECT_EQ(releases, 0);
    }
    EXPECT_EQ(releases, 1);
}

TEST(Share, TheLastOnAnotherThread) {
    int releases = 0;
    std::optional<tensor> a(counted(releases));
    std::thread other([b = a->share().value()]() mutable { const tensor gone = std::move(b); });
    a.reset();
    other.join();
    EXPECT_EQ(releases, 1);
}

TEST(Share, SharesOfSharesDoNotNest) {
    int releases = 0;
    std::optional<tensor> last(counted(releases));
    const auto nth = [&] {
        const int before = allocations_made;
        last = last->share().value();
        return allocations_made - before;
    };
    const int first = nth();
    int second = nth();
    EXPECT_LE(second, TENON_TEST_SEES_MALLOC ? first - 1 : first) << "one record for all that share";
    // A record on top of a record each time would be let go of by as many functions inside one another.
    for (int i = 0; i < 200'000; ++i) second = nth();
    EXPECT_EQ(second, 0);
    EXPECT_EQ(releases, 0);
    last.reset();
    EXPECT_EQ(releases, 1);
}

TEST(Share, WithoutMemoryEverythingIsAsItWas) {
    int releases = 0;
    {
        tensor a = counted(releases);
        {
            const only_allocations none(0);
            const auto failed = a.share();
            EXPECT_FALSE(failed);
        }
        EXPECT_EQ(releases, 0);
        EXPECT_EQ(static_cast<float*>(a.data())[1], 1.0F);
        EXPECT_TRUE(a.share().has_value());
        EXPECT_EQ(releases, 0);
    }
    EXPECT_EQ(releases, 1);
}

}  // namespace
