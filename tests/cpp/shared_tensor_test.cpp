// tests/cpp/shared_tensor_test.cpp: handles that hold a tensor together, and give its memory back once.

#include <gtest/gtest.h>

#include <new>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/tensor/shared_tensor.hpp>
#include <tenon/tensor/view.hpp>

#include "allocations.hpp"
#include "support.hpp"

namespace {

using namespace tenon_test;
using tenon::shared_tensor;
using tenon::tensor;

static_assert(std::is_nothrow_copy_constructible_v<shared_tensor> &&
              std::is_nothrow_move_constructible_v<shared_tensor> &&
              std::is_nothrow_default_constructible_v<shared_tensor>);

/// A tensor whose deleter counts.
tensor counted(int& releases) {
    static float memory[6] = {0, 1, 2, 3, 4, 5};
    return tensor::own(memory, {2, 3}, [&releases](float*) { ++releases; }).value();
}

TEST(SharedTensor, ShowsTheTensor) {
    int releases = 0;
    const shared_tensor a = counted(releases);
    ASSERT_TRUE(a);
    EXPECT_EQ(to_ints(a->shape()), (ints{2, 3}));
    const auto v = tenon::view<const float, 2>::from(a);
    ASSERT_TRUE(v);
    EXPECT_EQ((*v)(1, 2), 5.0F);
}

TEST(SharedTensor, TheLastHandleGivesItBack) {
    int releases = 0;
    {
        shared_tensor a = counted(releases);
        shared_tensor b = a, c;
        c = b;
        EXPECT_EQ(b->data(), c->data());
        EXPECT_EQ(b->shape().data(), c->shape().data()) << "one description serves all";
        a = {};
        b = std::move(c);
        EXPECT_FALSE(a);
        EXPECT_FALSE(c);  // NOLINT(bugprone-use-after-move): it is empty then
        EXPECT_EQ(releases, 0);
        b = *&b;  // NOLINT: to itself
        EXPECT_TRUE(b);
    }
    EXPECT_EQ(releases, 1);
}

TEST(SharedTensor, WhatWasHandedOverLivesOn) {
    int releases = 0;
    tensor last;
    {
        const shared_tensor a = counted(releases);
        last = a.share().value();
        EXPECT_EQ(last.data(), a->data());
    }
    EXPECT_EQ(releases, 0);
    last.reset();
    EXPECT_EQ(releases, 1);
}

TEST(SharedTensor, CopiesComeAndGoOnAnyThread) {
    int releases = 0;
    {
        const shared_tensor a = counted(releases);
        std::vector<std::thread> threads;
        threads.reserve(4);
        for (int n = 0; n < 4; ++n) {
            threads.emplace_back([a] {
                for (int k = 0; k < 1000; ++k) {
                    shared_tensor copy;
                    copy = a;
                    EXPECT_EQ(copy->size(), 6);
                }
            });
        }
        for (auto& one : threads) one.join();
        EXPECT_EQ(releases, 0);
    }
    EXPECT_EQ(releases, 1);
}

TEST(SharedTensor, ChainsAreLetGoOfWithoutRecursion) {
    struct link {
        shared_tensor next;
    };
    static float element = 0;
    shared_tensor chain;
    for (int n = 0; n < 200'000; ++n)
        chain = tensor::own(link{std::move(chain)}, tenon::tensor_info::contiguous(&element, {1})).value();
    chain = {};
}

}  // namespace
