// tests/cpp/managed_test.cpp: tensors that leave as managed structs: what is said in them, and that whoever
// lets go of the last one, wherever and however deep, gives the memory back once.

#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/memory/copy.hpp>
#include <tenon/tensor/managed.hpp>

#include "../../src/tensor/managed.hpp"

#include "allocations.hpp"
#include "support.hpp"

namespace {

using namespace tenon_test;
using tenon::errc;
using tenon::export_view;
using tenon::foreign;
using tenon::keep_alive;
using tenon::tensor;
using tenon::tensor_info;
using tenon::to_managed;
namespace abi = tenon::abi;
namespace dc = tenon::abi::device_code;

alignas(64) float memory[64];
std::atomic<int> releases;

keep_alive counted() {
    return {memory, [](void*, void*) noexcept { ++releases; }};
}
tensor lent(const tensor_info& info) {
    auto t = tensor::own(info, counted());
    if (!t) throw std::runtime_error(t.error().message());
    return std::move(*t);
}

template <class Struct>
class Managed : public testing::Test {
public:
    static constexpr bool is_versioned = std::is_same_v<Struct, abi::managed_tensor_versioned>;

    void SetUp() override { releases = 0; }

    static Struct* exported(tensor&& t) {
        auto m = to_managed<Struct>(std::move(t));
        if (!m) throw std::runtime_error(m.error().message());
        return *m;
    }
    static Struct* exported(const tensor_info& info) { return exported(lent(info)); }
    static std::uint64_t flags_of(const Struct* m) {
        if constexpr (is_versioned)
            return m->flags;
        else
            return 0;
    }
};
using both = testing::Types<abi::managed_tensor, abi::managed_tensor_versioned>;
TYPED_TEST_SUITE(Managed, both);

// --- what is said -----------------------------------------------------------------------------------

TYPED_TEST(Managed, SaysWhatTheTensorSaid) {
    auto* m = this->exported(tensor_info::strided(memory + 32, {3, 2}, {-2, 8}, {dc::cuda, 3}));
    EXPECT_EQ(m->tensor.data, memory + 32);
    EXPECT_EQ(m->tensor.ndim, 2);
    EXPECT_EQ(ints(m->tensor.shape, m->tensor.shape + 2), (ints{3, 2}));
    EXPECT_EQ(ints(m->tensor.strides, m->tensor.strides + 2), (ints{-2, 8}));
    EXPECT_EQ(tenon::dtype(m->tensor.dtype), tenon::dtype_of<float>);
    EXPECT_EQ(tenon::device(m->tensor.device), tenon::device(dc::cuda, 3));
    EXPECT_EQ(m->tensor.byte_offset, 0U);
    EXPECT_EQ(this->flags_of(m), 0U);
    if constexpr (TestFixture::is_versioned) {
        EXPECT_EQ(m->version.major, 1U);
        EXPECT_EQ(m->version.minor, 3U);
    }
    m->deleter(m);
    EXPECT_EQ(releases, 1);
}

TYPED_TEST(Managed, StridesAreNeverNull) {
    for (std::size_t rank = 0; rank <= 64; ++rank) {
        auto* m = this->exported(tensor_info::contiguous(memory, ints(rank, 1)));
        ASSERT_NE(m->tensor.strides, nullptr) << rank;
        ASSERT_NE(m->tensor.shape, nullptr) << rank;
        const auto n = static_cast<std::ptrdiff_t>(rank);
        EXPECT_EQ(ints(m->tensor.shape, m->tensor.shape + n), ints(rank, 1));
        EXPECT_EQ(ints(m->tensor.strides, m->tensor.strides + n), ints(rank, 1));
        m->deleter(m);
    }
    EXPECT_EQ(releases, 65);
}

TYPED_TEST(Managed, IsReadBackAsItWas) {
    tensor t = lent(tensor_info::strided(memory, {2, 3, 4}, {1, 2, 6}));
    foreign received(this->exported(std::move(t)));
    const auto back = tensor::take(received);
    ASSERT_TRUE(back) << back.error();
    EXPECT_EQ(back->data(), memory);
    EXPECT_EQ(to_ints(back->shape()), (ints{2, 3, 4}));
    EXPECT_EQ(to_ints(back->strides()), (ints{1, 2, 6}));
    EXPECT_EQ(back->version().major, TestFixture::is_versioned ? 1U : 0U);
}

TYPED_TEST(Managed, NothingHasNoAddress) {
    for (const auto kind : {dc::cpu, dc::cuda, dc::metal}) {
        auto* m = this->exported(tensor_info::contiguous(memory, {2, 0}, {kind, 0}).with_byte_offset(8));
        EXPECT_EQ(m->tensor.data, nullptr);
        EXPECT_EQ(m->tensor.byte_offset, 0U);
        EXPECT_EQ(ints(m->tensor.shape, m->tensor.shape + 2), (ints{2, 0}));
        EXPECT_EQ(releases, 0) << "what it owns stays owned";
        m->deleter(m);
        EXPECT_EQ(releases.exchange(0), 1);
    }
}

TYPED_TEST(Managed, OffsetsAreFoldedIntoAddresses) {
    for (const auto kind : {dc::cpu, dc::cuda, dc::rocm, dc::cuda_managed, dc::oneapi}) {
        auto* m = this->exported(tensor_info::contiguous(memory, 4, {kind, 0}).with_byte_offset(16));
        EXPECT_EQ(m->tensor.data, memory + 4) << kind;
        EXPECT_EQ(m->tensor.byte_offset, 0U) << kind;
        m->deleter(m);
    }
}

TYPED_TEST(Managed, HandlesKeepTheirOffset) {
    for (const auto kind : {dc::metal, dc::opencl, dc::vulkan, dc::webgpu}) {
        auto* m = this->exported(tensor_info::contiguous(memory, 4, {kind, 2}).with_byte_offset(16));
        EXPECT_EQ(m->tensor.data, memory) << kind;
        EXPECT_EQ(m->tensor.byte_offset, 16U) << kind;
        EXPECT_EQ(m->tensor.device.device_id, 2) << kind;
        m->deleter(m);
    }
}

TYPED_TEST(Managed, HostMemoryIsNumberedZero) {
    for (const auto kind : {dc::cpu, dc::cuda_host, dc::rocm_host, dc::cuda_managed}) {
        auto* m = this->exported(tensor_info::contiguous(memory, 4, {kind, 3}));
        EXPECT_EQ(m->tensor.device.device_type, kind);
        EXPECT_EQ(m->tensor.device.device_id, 0) << kind;
        m->deleter(m);
    }
    for (const auto kind : {dc::cuda, dc::rocm, dc::oneapi, dc::ext_dev}) {
        auto* m = this->exported(tensor_info::contiguous(memory, 4, {kind, 3}));
        EXPECT_EQ(m->tensor.device.device_id, 3) << kind;
        m->deleter(m);
    }
}

TYPED_TEST(Managed, HostMemoryShownAsTheCpus) {
    for (const auto kind : {dc::cpu, dc::cuda_host, dc::cuda_managed}) {
        const tensor t = lent(tensor_info::contiguous(memory, 4, {kind, 3}));
        keep_alive owner = counted();
        auto* m = tenon::make_managed<TypeParam>(t, owner, {.shown_on = tenon::device{}});
        ASSERT_NE(m, nullptr);
        EXPECT_EQ(tenon::device(m->tensor.device), tenon::device{}) << kind;
        EXPECT_EQ(m->tensor.data, memory);
        EXPECT_EQ(owner.release_function(), nullptr) << "moved into the struct";
        m->deleter(m);
    }
}

// --- flags ------------------------------------------------------------------------------------------

class ManagedFlags : public Managed<abi::managed_tensor_versioned> {};

TEST_F(ManagedFlags, AsTheTensorHasThem) {
    const auto flags = [](const tensor_info& info, export_view how = {}) {
        const tensor t = lent(info);
        keep_alive nobody;
        auto* m = tenon::make_managed<abi::managed_tensor_versioned>(t, nobody, how);
        const std::uint64_t said = m->flags;
        m->deleter(m);
        return said;
    };
    const auto info = tensor_info::contiguous(static_cast<void*>(memory), "float4_e2m1fn", 4);
    EXPECT_EQ(flags(info), 0U);
    EXPECT_EQ(flags(info.read_only()), abi::flag::read_only);
    EXPECT_EQ(flags(info.padded()), abi::flag::subbyte_padded);
    EXPECT_EQ(flags(info.padded().read_only()), abi::flag::subbyte_padded | abi::flag::read_only);
    EXPECT_EQ(flags(info, {.fresh_copy = true}), abi::flag::is_copied);
}

TEST_F(ManagedFlags, ACopyOfOnesOwnIsNotTheConsumers) {
    tensor t = lent(tensor_info::contiguous(memory, 4));
    t.mark_copied();
    auto* m = exported(std::move(t));
    EXPECT_EQ(m->flags, 0U) << "only a copy made for this consumer alone is said to be one";
    m->deleter(m);
}

TEST_F(ManagedFlags, TightenedAfterwards) {
    tensor t = lent(tensor_info::contiguous(memory, 4));
    t.set_read_only();
    auto* m = exported(std::move(t));
    EXPECT_EQ(m->flags, abi::flag::read_only);
    m->deleter(m);
}

class ManagedLegacy : public Managed<abi::managed_tensor> {};

TEST_F(ManagedLegacy, NeverReadOnlyNeverPadded) {
    const auto info = tensor_info::contiguous(static_cast<void*>(memory), "float4_e2m1fn", 4);
    for (const auto& each : {info.read_only(), info.padded(), info.padded().read_only()}) {
        releases = 0;
        {
            tensor t = lent(each);
            expect_error(to_managed<abi::managed_tensor>(std::move(t)), errc::refused, "max_version");
            EXPECT_EQ(t.data(), memory) << "left as it was";  // NOLINT
            EXPECT_EQ(releases, 0);
            auto* m = Managed<abi::managed_tensor_versioned>::exported(std::move(t));
            EXPECT_EQ(m->flags, each.flags()) << "and may still leave as the other struct";
            m->deleter(m);
            EXPECT_EQ(releases, 1);
        }
        EXPECT_EQ(releases, 1);
    }
    auto* m = exported(info);
    EXPECT_EQ(tenon::dtype(m->tensor.dtype).bits, 4) << "packed ones may";
    m->deleter(m);
}

// --- who lets go ------------------------------------------------------------------------------------

TYPED_TEST(Managed, TheTensorIsEmptyAfterwards) {
    tensor t = lent(tensor_info::contiguous(memory, {1, 1, 1, 1, 1, 2}));
    auto* m = this->exported(std::move(t));
    EXPECT_EQ(t.ndim(), 0);  // NOLINT: empty by contract
    EXPECT_EQ(t.data(), nullptr);
    t = lent(tensor_info::contiguous(memory, 4));
    EXPECT_EQ(releases, 0);
    m->deleter(m);
    EXPECT_EQ(releases, 1);
}

TYPED_TEST(Managed, DeleterOnAnotherThread) {
    auto* m = this->exported(tensor_info::contiguous(memory, 4));
    std::thread([m] { m->deleter(m); }).join();
    EXPECT_EQ(releases, 1);
}

TYPED_TEST(Managed, ManyOnManyThreads) {
    constexpr int each = 500;
    std::array<std::thread, 4> threads;
    for (auto& t : threads)
        t = std::thread([this] {
            for (int i = 0; i < each; ++i) {
                auto* m = this->exported(tensor_info::contiguous(memory, {2, 2}));
                m->deleter(m);
            }
        });
    for (auto& t : threads) t.join();
    EXPECT_EQ(releases, 4 * each);
}

TYPED_TEST(Managed, TwoExportsAreIndependent) {
    // Two structs over one memory, each with an owner of its own.
    const tensor t = lent(tensor_info::contiguous(memory, {2, 2}));
    keep_alive a = counted();
    keep_alive b = counted();
    auto* first = tenon::make_managed<TypeParam>(t, a);
    auto* second = tenon::make_managed<TypeParam>(t, b);
    ASSERT_TRUE(first != nullptr && second != nullptr && first != second);
    EXPECT_NE(first->tensor.shape, second->tensor.shape);
    EXPECT_NE(first->tensor.strides, second->tensor.strides);
    first->tensor.shape[0] = 99;  // a consumer may do as it likes with its own
    first->tensor.data = nullptr;
    first->deleter(first);
    EXPECT_EQ(releases, 1);
    EXPECT_EQ(second->tensor.shape[0], 2);
    EXPECT_EQ(second->tensor.data, memory);
    second->deleter(second);
    EXPECT_EQ(releases, 2);
    EXPECT_EQ(t.shape(0), 2);
}

TYPED_TEST(Managed, NothingBehindItIsFine) {
    auto t = tensor::own(tensor_info::contiguous(memory, 4), keep_alive());
    auto* m = this->exported(std::move(*t));
    m->deleter(m);
    EXPECT_EQ(releases, 0);
}

TYPED_TEST(Managed, SaysThatItWentToWhoeverAsked) {
    bool gone = false;
    auto* m = this->exported(tensor_info::contiguous(memory, 4));
    tenon::detail::managed_block<TypeParam>::of(m)->released = &gone;
    EXPECT_FALSE(gone);
    m->deleter(m);
    EXPECT_TRUE(gone);
}

#if TENON_TEST_SEES_MALLOC
TYPED_TEST(Managed, OneAllocation) {
    for (const std::size_t rank : {std::size_t{0}, std::size_t{5}, std::size_t{64}}) {
        tensor t = lent(tensor_info::contiguous(memory, ints(rank, 1)));
        const int before = allocations_made;
        auto m = to_managed<TypeParam>(std::move(t));
        EXPECT_EQ(allocations_made - before, 1) << rank;
        ASSERT_TRUE(m);
        (*m)->deleter(*m);
        EXPECT_EQ(allocations_made - before, 1) << rank << ", released";
    }
}
#endif

// --- chains -----------------------------------------------------------------------------------------

/// Runs `work` on a thread with a stack of 256 KiB.
template <class Work>
void on_a_small_stack(Work&& work) {
    pthread_attr_t attributes;
    ASSERT_EQ(pthread_attr_init(&attributes), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, std::size_t{256} << 10U), 0);
    pthread_t thread{};
    const auto run = [](void* w) -> void* {
        (*static_cast<std::remove_reference_t<Work>*>(w))();
        return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, &attributes, run, &work), 0);
    ASSERT_EQ(pthread_join(thread, nullptr), 0);
    pthread_attr_destroy(&attributes);
}

TYPED_TEST(Managed, DeepChainsAreReleasedWithoutRecursion) {
    on_a_small_stack([this] {
        auto* m = this->exported(tensor_info::contiguous(memory, {2, 2}));
        for (int i = 0; i < 100'000; ++i) {
            foreign received(m);
            auto t = tensor::take(received);
            ASSERT_TRUE(t) << t.error();
            m = this->exported(std::move(*t));
        }
        EXPECT_EQ(releases, 0);
        m->deleter(m);
        EXPECT_EQ(releases, 1);
        // And the thread is fit for the next one.
        m = this->exported(tensor_info::contiguous(memory, {2, 2}));
        m->deleter(m);
        EXPECT_EQ(releases, 2);
    });
}

TYPED_TEST(Managed, DeepChainsThroughObjectsOfTheUser) {
    // Each object holds the struct of the one before, and is itself owned by a tensor.
    struct link {
        foreign before;
    };
    on_a_small_stack([this] {
        auto* m = this->exported(tensor_info::contiguous(memory, {2, 2}));
        for (int i = 0; i < 100'000; ++i) {
            auto t = tensor::own(link{foreign(m)}, tensor_info::contiguous(memory, {2, 2}));
            ASSERT_TRUE(t) << t.error();
            m = this->exported(std::move(*t));
        }
        EXPECT_EQ(releases, 0);
        m->deleter(m);
        EXPECT_EQ(releases, 1);
    });
}

TYPED_TEST(Managed, BroadChains) {
    // One that holds many that hold many: all are let go of by the time the outermost deleter returns.
    struct bundle {
        std::vector<foreign> held;
    };
    on_a_small_stack([this] {
        int leaves = 0;
        const auto grow = [&](auto& self, int depth) -> TypeParam* {
            if (depth == 0) {
                ++leaves;
                return this->exported(tensor_info::contiguous(memory, 4));
            }
            bundle b;
            for (int i = 0; i < 2; ++i) b.held.emplace_back(self(self, depth - 1));
            auto t = tensor::own(std::move(b), tensor_info::contiguous(memory, 4));
            return this->exported(std::move(*t));
        };
        auto* m = grow(grow, 10);
        // A long thin part on top, so that the broad part is let go of far down.
        for (int i = 0; i < 100; ++i) {
            foreign received(m);
            m = this->exported(std::move(*tensor::take(received)));
        }
        m->deleter(m);
        EXPECT_EQ(leaves, 1024);
        EXPECT_EQ(releases, 1024);
    });
}

}  // namespace
