// tests/cpp/own_test.cpp: memory of the caller's own becomes a tensor in every form there is, and is given
// back exactly once whatever happens.

#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenon/tensor/tensor.hpp>
#include <tenon/tensor/view.hpp>

#include "support.hpp"

namespace {

using namespace tenon_test;
using tenon::errc;
using tenon::keep_alive;
using tenon::tensor;
using tenon::tensor_info;
namespace abi = tenon::abi;
namespace dc = tenon::abi::device_code;

/// How often memory was given back, and which.
struct tally {
    int releases = 0;
    void* last = nullptr;
    static void on_release(void* subject, void* context) noexcept {
        auto* me = static_cast<tally*>(context);
        ++me->releases, me->last = subject;
    }
};

/// What `own` says of an array of numbers, and nothing else.
void expect_owned(const tenon::result<tensor>& t, const void* data, const ints& shape, const ints& strides) {
    ASSERT_TRUE(t) << t.error();
    EXPECT_EQ(t->data(), data);
    EXPECT_EQ(to_ints(t->shape()), shape);
    EXPECT_EQ(to_ints(t->strides()), strides);
    EXPECT_FALSE(t->is_copied()) << "it was not";
    EXPECT_EQ(t->version().major, abi::dlpack_major);
}

// --- vectors ----------------------------------------------------------------------------------------

int vector_blocks;  // that are allocated now

template <class T>
struct counting_allocator {
    using value_type = T;
    counting_allocator() = default;
    template <class U>
    explicit counting_allocator(const counting_allocator<U>&) {}
    T* allocate(std::size_t n) {
        ++vector_blocks;
        return static_cast<T*>(::operator new(n * sizeof(T)));
    }
    void deallocate(T* p, std::size_t) {
        --vector_blocks;
        ::operator delete(p);
    }
    friend bool operator==(counting_allocator, counting_allocator) { return true; }
};
template <class T>
using counted_vector = std::vector<T, counting_allocator<T>>;

class OwnVector : public testing::Test {
protected:
    void SetUp() override { vector_blocks = 0; }
    void TearDown() override { EXPECT_EQ(vector_blocks, 0) << "vectors not given back"; }
};

TEST_F(OwnVector, KeepsItsElementsWhereTheyAre) {
    counted_vector<float> v{1, 2, 3, 4, 5, 6};
    const float* const data = v.data();
    const auto t = tensor::own(std::move(v), {2, 3});
    expect_owned(t, data, {2, 3}, {3, 1});
    EXPECT_EQ(vector_blocks, 1);
    EXPECT_FALSE(t->is_read_only());
    EXPECT_EQ(t->dtype(), tenon::dtype_of<float>);
    EXPECT_EQ(t->device(), tenon::device{});
    EXPECT_EQ(static_cast<const float*>(t->data())[5], 6.0F);
}

TEST_F(OwnVector, WithoutAShapeIsOneAxis) {
    counted_vector<std::int16_t> v{1, 2, 3};
    const auto* const data = v.data();
    const auto t = tensor::own(std::move(v));
    expect_owned(t, data, {3}, {1});
    EXPECT_EQ(t->nbytes(), 6);
}

TEST_F(OwnVector, ElementsThatAreNamed) {
    counted_vector<double> v{1, 2, 3, 4};
    const auto* const data = v.data();
    expect_owned(tensor::own<double>(std::move(v), {2, 2}), data, {2, 2}, {2, 1});
}

TEST_F(OwnVector, WhoseClassIsNamed) {  // as Cython does
    std::vector<double> v{1, 2, 3, 4};
    const void* const data = v.data();
    expect_owned(tensor::own<std::vector<double>>(std::move(v), {2, 2}), data, {2, 2}, {2, 1});
}

TEST_F(OwnVector, ShapesOfAnyKind) {
    EXPECT_EQ(tensor::own(counted_vector<double>(1), {})->ndim(), 0);
    EXPECT_EQ(to_ints(tensor::own(counted_vector<double>(6), 6)->shape()), ints{6});
    EXPECT_EQ(to_ints(tensor::own(counted_vector<double>(6), ints{1, 6, 1})->shape()), (ints{1, 6, 1}));
    EXPECT_EQ(to_ints(tensor::own(counted_vector<double>(6), std::array{3U, 2U})->shape()), (ints{3, 2}));
    EXPECT_EQ(tensor::own(counted_vector<double>(1), ints(64, 1))->ndim(), 64);
}

TEST_F(OwnVector, OfNoElements) {
    for (const auto& t :
         {tensor::own(counted_vector<float>()), tensor::own(counted_vector<float>(), {0, 5})}) {
        ASSERT_TRUE(t) << t.error();
        EXPECT_EQ(t->size(), 0);
    }
    const auto huge = tensor::own(counted_vector<float>(), {int64_highest, 0, int64_highest});
    ASSERT_TRUE(huge) << huge.error() << ": whatever the other extents are";
    EXPECT_EQ(huge->size(), 0);
}

TEST_F(OwnVector, ElementsOfAnyType) {
    EXPECT_EQ(tensor::own(counted_vector<std::complex<float>>(2))->dtype(),
              tenon::dtype_of<std::complex<float>>);
    EXPECT_EQ(tensor::own(counted_vector<tenon::bool8>(2))->dtype(), tenon::dtype_of<bool>);
    EXPECT_EQ(tensor::own(counted_vector<char>(2))->itemsize(), 1);
}

TEST_F(OwnVector, ShapeOfAnotherSize) {
    for (const ints& shape : {ints{5}, ints{7}, ints{2, 4}, ints{}, ints{0}, ints{6, 0}, ints{6, 2}}) {
        const auto t = tensor::own(counted_vector<float>(6), shape);
        expect_error(t, errc::refused, "shape");
        EXPECT_EQ(t.error().got, *tenon::element_count(shape));
        EXPECT_EQ(t.error().wanted, 6);
        EXPECT_EQ(vector_blocks, 0);
    }
    expect_error(tensor::own(counted_vector<float>(), {}), errc::refused, "shape");
    expect_error(tensor::own(counted_vector<float>(), {1}), errc::refused, "shape");
}

TEST_F(OwnVector, ShapeThatIsNone) {
    expect_error(tensor::own(counted_vector<float>(6), {-2, -3}), errc::malformed, "shape", 0);
    expect_error(tensor::own(counted_vector<float>(6), {2, -3}), errc::malformed, "shape", 1);
    expect_error(tensor::own(counted_vector<float>(), {0, -1}), errc::malformed, "shape", 1);
    expect_error(tensor::own(counted_vector<float>(6), {int64_highest, 2}), errc::malformed, "shape");
    expect_error(tensor::own(counted_vector<float>(6), ints(65, 1)), errc::refused, "shape");
    EXPECT_FALSE(tensor::own(counted_vector<float>(6), {6, SIZE_MAX}));
}

/// "own() takes it in every case": nobody has to guess whether a vector that was refused is still there.
TEST_F(OwnVector, IsTakenEvenIfRefused) {
    for (const ints& shape : {ints{7}, ints{-1}, ints(65, 1)}) {
        counted_vector<float> v(6);
        EXPECT_FALSE(tensor::own(std::move(v), shape));
        EXPECT_EQ(vector_blocks, 0) << testing::PrintToString(shape);
        EXPECT_TRUE(v.empty()) << testing::PrintToString(shape);  // NOLINT: that is the question
    }
}

// --- unique_ptr -------------------------------------------------------------------------------------

int stateless_calls;
struct stateless_free {
    void operator()(const float* p) const {
        ++stateless_calls;
        delete[] p;
    }
};
struct stateful_free {
    tally* to;
    void operator()(float* p) const {
        ++to->releases, to->last = p;
        delete[] p;
    }
};
struct throwing_free {
    // NOLINTNEXTLINE(readability-non-const-parameter): as deleters have it
    void operator()(float* p) const {
        delete[] p;
        ++stateless_calls;
        throw std::runtime_error("a deleter");
    }
};

TEST(OwnUniquePtr, DefaultDelete) {
    auto p = std::make_unique<float[]>(6);
    const float* const data = p.get();
    const auto t = tensor::own(std::move(p), {2, 3});
    EXPECT_EQ(p, nullptr);  // NOLINT: taken
    expect_owned(t, data, {2, 3}, {3, 1});
    EXPECT_FALSE(t->is_read_only());
}

TEST(OwnUniquePtr, ToConstIsReadOnly) {
    const auto t = tensor::own(std::unique_ptr<const float[]>(new float[4]{}), 4);
    ASSERT_TRUE(t);
    EXPECT_TRUE(t->is_read_only());
    EXPECT_EQ(t->dtype(), tenon::dtype_of<float>);
}

TEST(OwnUniquePtr, StatelessDeleter) {
    stateless_calls = 0;
    {
        float* const data = new float[6];
        const auto t = tensor::own(std::unique_ptr<float[], stateless_free>(data), {6});
        expect_owned(t, data, {6}, {1});
        EXPECT_EQ(stateless_calls, 0);
    }
    EXPECT_EQ(stateless_calls, 1);
    expect_error(tensor::own(std::unique_ptr<const float[], stateless_free>(new float[6]), {-6}),
                 errc::malformed, "shape", 0);
    EXPECT_EQ(stateless_calls, 2);
}

TEST(OwnUniquePtr, StatefulDeleter) {
    tally seen;
    float* const data = new float[6];
    {
        const auto t = tensor::own(std::unique_ptr<float[], stateful_free>(data, {&seen}), {3, 2});
        expect_owned(t, data, {3, 2}, {2, 1});
        EXPECT_EQ(seen.releases, 0);
    }
    EXPECT_EQ(seen.releases, 1);
    EXPECT_EQ(seen.last, data);
    expect_error(tensor::own(std::unique_ptr<float[], stateful_free>(new float[6], {&seen}), {-6}),
                 errc::malformed, "shape", 0);
    EXPECT_EQ(seen.releases, 2);
}

TEST(OwnUniquePtr, DeleterThatIsAFunction) {
    static int calls;
    calls = 0;
    // NOLINTNEXTLINE(readability-non-const-parameter): as deleters have it
    const auto give_back = [](float* p) { ++calls, delete[] p; };
    using pointer = std::unique_ptr<float[], void (*)(float*)>;
    EXPECT_TRUE(tensor::own(pointer(new float[2], give_back), 2));
    EXPECT_EQ(calls, 1);
    EXPECT_TRUE(
        tensor::own(std::unique_ptr<float[], std::function<void(float*)>>(new float[2], give_back), 2));
    EXPECT_EQ(calls, 2);
}

TEST(OwnUniquePtr, DeleterThatThrows) {
    stateless_calls = 0;
    EXPECT_TRUE(tensor::own(std::unique_ptr<float[], throwing_free>(new float[2]), 2));
    EXPECT_EQ(stateless_calls, 1);
    EXPECT_FALSE(tensor::own(std::unique_ptr<float[], throwing_free>(new float[2]), -2));
    EXPECT_EQ(stateless_calls, 2);
}

TEST(OwnUniquePtr, NullHoldsNothing) {
    tally seen;
    stateless_calls = 0;
    expect_error(tensor::own(std::unique_ptr<float[]>(), 3), errc::malformed, "data");
    expect_error(tensor::own(std::unique_ptr<float[], stateless_free>(), 3), errc::malformed, "data");
    expect_error(tensor::own(std::unique_ptr<float[], stateful_free>(nullptr, {&seen}), 3), errc::malformed,
                 "data");
    expect_error(tensor::own(std::unique_ptr<float[]>(), {}), errc::malformed, "data");
    EXPECT_TRUE(tensor::own(std::unique_ptr<float[], stateless_free>(), {3, 0}));
    EXPECT_TRUE(tensor::own(std::unique_ptr<float[], stateful_free>(nullptr, {&seen}), 0));
    EXPECT_EQ(seen.releases + stateless_calls, 0) << "a unique_ptr does not delete null";
}

TEST(OwnUniquePtr, OnADevice) {
    tally seen;
    struct device_free {
        tally* to;
        void operator()(float*) const { ++to->releases; }
    };
    {
        const auto t = tensor::own(
            std::unique_ptr<float[], device_free>(static_cast<float*>(address(0x7f0000001000)), {&seen}),
            {2, 2}, {dc::cuda, 1});
        expect_owned(t, address(0x7f0000001000), {2, 2}, {2, 1});
        EXPECT_EQ(t->device(), tenon::device(dc::cuda, 1));
    }
    EXPECT_EQ(seen.releases, 1);
}

// --- shared_ptr -------------------------------------------------------------------------------------

TEST(OwnSharedPtr, CountsAsOneMore) {
    const std::shared_ptr<float[]> p(new float[6]{1, 2, 3, 4, 5, 6});
    {
        const auto t = tensor::own(p, {2, 3});
        expect_owned(t, p.get(), {2, 3}, {3, 1});
        EXPECT_EQ(p.use_count(), 2);
        EXPECT_FALSE(t->is_read_only());
    }
    EXPECT_EQ(p.use_count(), 1);
}

TEST(OwnSharedPtr, ToOneElementOrIntoAnObject) {
    EXPECT_EQ(tensor::own(std::make_shared<double>(2.5), {})->nbytes(), 8);
    const auto whole = std::make_shared<std::vector<float>>(6);
    const auto t = tensor::own(std::shared_ptr<float>(whole, whole->data()), 6);
    expect_owned(t, whole->data(), {6}, {1});
    EXPECT_EQ(whole.use_count(), 2);
}

TEST(OwnSharedPtr, ToConstIsReadOnly) {
    const std::shared_ptr<const float> one = std::make_shared<float>(1.0F);
    const std::shared_ptr<const float[]> many(new float[3]{});
    EXPECT_TRUE(tensor::own(one, 1)->is_read_only());
    EXPECT_TRUE(tensor::own(many, 3)->is_read_only());
    EXPECT_EQ(tensor::own(many, 3)->dtype(), tenon::dtype_of<float>);
}

TEST(OwnSharedPtr, RefusedIsLetGo) {
    const std::shared_ptr<float[]> p(new float[6]);
    expect_error(tensor::own(p, {-6}), errc::malformed, "shape", 0);
    expect_error(tensor::own(p, ints(70, 1)), errc::refused, "shape");
    EXPECT_EQ(p.use_count(), 1);
    expect_error(tensor::own(std::shared_ptr<float[]>(), 1), errc::malformed, "data");
    EXPECT_TRUE(tensor::own(std::shared_ptr<float[]>(), 0));
}

}  // namespace

// --- objects of any class ---------------------------------------------------------------------------

namespace user {

int images;  // that exist and were not moved from

/// A class that knows nothing of tensors but has a function `describe` beside it.
class image {
public:
    image(std::int64_t rows, std::int64_t columns)
        : pixels_(static_cast<std::size_t>(rows * columns)), rows_(rows), columns_(columns) {
        ++images;
    }
    image(image&& o) noexcept
        : pixels_(std::move(o.pixels_)),
          rows_(o.rows_),
          columns_(o.columns_),
          full_(std::exchange(o.full_, false)) {}
    ~image() { images -= full_ ? 1 : 0; }

    [[nodiscard]] const std::uint8_t* pixels() const { return pixels_.data(); }
    friend tenon::tensor_info describe(const image& i) {
        return tenon::tensor_info::contiguous(i.pixels_.data(), {i.rows_, i.columns_});
    }

private:
    std::vector<std::uint8_t> pixels_;
    std::int64_t rows_;
    std::int64_t columns_;
    bool full_ = true;
};

/// The numbers lie in the object itself: they are elsewhere after a move.
struct matrix {
    std::array<float, 4> values;
};
inline tenon::tensor_info describe(matrix& m) {
    return tenon::tensor_info::contiguous(m.values.data(), {2, 2});
}

/// Described differently as const: the object comes to rest as a non-const one.
struct two_faced {
    std::array<float, 2> values;
};
inline tenon::tensor_info describe(two_faced& m) {
    return tenon::tensor_info::contiguous(m.values.data(), 2);
}
inline tenon::tensor_info describe(const two_faced& m) {
    return tenon::tensor_info::contiguous(m.values.data(), 2);
}

struct speechless {
    std::shared_ptr<int> held;
};
inline tenon::tensor_info describe(const speechless&) { throw std::runtime_error("a describe"); }

}  // namespace user

namespace {

TEST(OwnObject, DescribedByTheFunctionBesideItsClass) {
    user::images = 0;
    {
        user::image i(3, 5);
        const auto* const pixels = i.pixels();
        auto t = tensor::own(std::move(i));
        expect_owned(t, pixels, {3, 5}, {5, 1});
        EXPECT_TRUE(t->is_read_only()) << "it is described as a const object";
        EXPECT_EQ(user::images, 1);
        const tensor moved = std::move(*t);
        EXPECT_EQ(moved.data(), pixels);
    }
    EXPECT_EQ(user::images, 0);
}

TEST(OwnObject, DescribedWhereItComesToRest) {
    auto t = tensor::own(user::matrix{{1, 2, 3, 4}});
    ASSERT_TRUE(t) << t.error();
    EXPECT_FALSE(t->is_read_only());
    const auto* const values = static_cast<const float*>(t->data());
    EXPECT_EQ(&static_cast<tenon::detail::box<user::matrix>*>(t->owner().subject())->object, t->data())
        << "inside the object that is kept";
    const tensor moved = std::move(*t);
    EXPECT_EQ(moved.data(), values) << "moving the tensor does not move the object";
    EXPECT_EQ(values[3], 4.0F);
}

TEST(OwnObject, NonConstDescribeIsPreferred) {
    EXPECT_FALSE(tensor::own(user::two_faced{{1, 2}})->is_read_only());
}

TEST(OwnObject, DescribedByALambda) {
    struct buffer {
        std::array<double, 6> values{};
    };
    const auto t = tensor::own(buffer{}, [](buffer& b) {
        b.values[5] = 7;
        return tensor_info::strided(b.values.data(), {3, 2}, {1, 3});
    });
    ASSERT_TRUE(t) << t.error();
    EXPECT_EQ(to_ints(t->strides()), (ints{1, 3}));
    EXPECT_EQ(static_cast<const double*>(t->data())[5], 7.0);
    EXPECT_EQ(&static_cast<tenon::detail::box<buffer>*>(t->owner().subject())->object, t->data());
    const auto read_only =
        tensor::own(buffer{}, [](const buffer& b) { return tensor_info::contiguous(b.values.data(), 6); });
    EXPECT_TRUE(read_only->is_read_only());
    const auto writable = tensor::own(
        buffer{}, [](const buffer& b) { return tensor_info::contiguous(b.values.data(), 6).writable(); });
    EXPECT_FALSE(writable->is_read_only());
}

TEST(OwnObject, LambdaGoesBeforeTheFunctionBesideTheClass) {
    const auto t = tensor::own(user::matrix{{1, 2, 3, 4}}, [](user::matrix& m) {
        return tensor_info::contiguous(m.values.data() + 1, 3);
    });
    EXPECT_EQ(to_ints(t->shape()), ints{3});
}

TEST(OwnObject, WithADescriptionMadeBefore) {
    const auto held = std::make_shared<std::vector<float>>(8);
    {
        const auto t = tensor::own(std::shared_ptr(held), tensor_info::strided(held->data(), {2, 2}, {4, 2}));
        expect_owned(t, held->data(), {2, 2}, {4, 2});
        EXPECT_EQ(held.use_count(), 2);
    }
    EXPECT_EQ(held.use_count(), 1);
}

TEST(OwnObject, VectorWithADescriptionOfPartOfIt) {
    std::vector<float> v(10);
    const auto info = tensor_info::strided(v.data() + 9, {5}, {-2});
    const float* const data = v.data();
    expect_owned(tensor::own(std::move(v), info), data + 9, {5}, {-2});
}

TEST(OwnObject, ATensorMayBeWhatKeepsTheMemory) {
    tally seen;
    float memory[6] = {};
    {
        auto whole =
            tensor::own(tensor_info::contiguous(memory, 6), keep_alive(memory, tally::on_release, &seen));
        ASSERT_TRUE(whole);
        const auto part = tensor::own(std::move(*whole), tensor_info::contiguous(memory + 2, 2));
        ASSERT_TRUE(part) << part.error();
        EXPECT_EQ(seen.releases, 0);
    }
    EXPECT_EQ(seen.releases, 1);
}

TEST(OwnObject, ThatCanOnlyBeMoved) {
    auto p = std::make_unique<float>(1.5F);
    float* const data = p.get();
    expect_owned(tensor::own(std::move(p), tensor_info::contiguous(data, {})), data, {}, {});
}

TEST(OwnObject, ThatIsOverAligned) {
    struct alignas(128) wide {
        float values[32] = {};
    };
    const auto t = tensor::own(wide{}, [](wide& w) { return tensor_info::contiguous(w.values, 32); });
    ASSERT_TRUE(t);
    EXPECT_TRUE(t->is_aligned_to(128));
}

TEST(OwnObject, RefusedIsReleased) {
    user::images = 0;
    const auto describe_badly = [](user::image& i) { return tensor_info::contiguous(i.pixels(), {-1}); };
    expect_error(tensor::own(user::image(2, 2), describe_badly), errc::malformed, "shape", 0);
    EXPECT_EQ(user::images, 0);
    expect_error(tensor::own(user::image(-1, -4)), errc::malformed, "shape", 0);
    EXPECT_EQ(user::images, 0);
    const float x = 0;
    expect_error(tensor::own(user::image(2, 2), tensor_info::contiguous(&x, ints(65, 1))), errc::refused,
                 "shape");
    EXPECT_EQ(user::images, 0);
}

TEST(OwnObject, DescribeThatThrows) {
    const auto held = std::make_shared<int>(0);
    EXPECT_THROW((void)tensor::own(user::speechless{held}), std::runtime_error);
    EXPECT_EQ(held.use_count(), 1);
    EXPECT_THROW(
        (void)tensor::own(std::shared_ptr(held),
                          [](std::shared_ptr<int>&) -> tensor_info { throw std::runtime_error("no"); }),
        std::runtime_error);
    EXPECT_EQ(held.use_count(), 1);
}

TEST(OwnObject, MoveThatThrows) {
    struct heavy {
        std::shared_ptr<int> held;
        explicit heavy(std::shared_ptr<int> h) : held(std::move(h)) {}
        // NOLINTNEXTLINE(performance-*): it throws
        heavy(heavy&& o) : held(o.held) { throw std::runtime_error("a move"); }
    };
    const auto held = std::make_shared<int>(0);
    const float x = 0;
    bool described = false;
    const auto describe_it = [&](heavy&) {
        described = true;
        return tensor_info::contiguous(&x, 1);
    };
    EXPECT_THROW((void)tensor::own(heavy(held), describe_it), std::runtime_error);
    EXPECT_THROW((void)tensor::own(heavy(held), tensor_info::contiguous(&x, 1)), std::runtime_error);
    EXPECT_FALSE(described);
    EXPECT_EQ(held.use_count(), 1);
}

TEST(OwnObject, ReleasedOnTheThreadThatDropsIt) {
    struct witness {
        std::thread::id* died_on;
        explicit witness(std::thread::id* d) : died_on(d) {}
        witness(witness&& o) noexcept : died_on(std::exchange(o.died_on, nullptr)) {}
        ~witness() {
            if (died_on != nullptr) *died_on = std::this_thread::get_id();
        }
    };
    std::thread::id died_on;
    const float x = 0;
    auto t = tensor::own(witness(&died_on), tensor_info::contiguous(&x, 1));
    ASSERT_TRUE(t);
    std::thread other([moved = std::move(*t)] {});
    const auto id = other.get_id();
    other.join();
    EXPECT_EQ(died_on, id);
}

// --- a pointer and its deleter ----------------------------------------------------------------------

TEST(OwnPointer, DeleterGetsThePointerOfTheDescription) {
    tally seen;
    alignas(8) std::byte memory[64]{};
    const auto give_back = [&seen](void* p) { ++seen.releases, seen.last = p; };
    {
        const auto t = tensor::own(
            tensor_info::strided(static_cast<void*>(memory), "int16", {2, 3}, {8, 2}, {dc::cuda_host, 0})
                .with_byte_offset(16),
            give_back);
        expect_owned(t, memory + 16, {2, 3}, {8, 2});
        EXPECT_EQ(t->base(), memory);
        EXPECT_EQ(t->byte_offset(), 16U);
        EXPECT_EQ(t->device(), tenon::device(dc::cuda_host, 0));
        EXPECT_EQ(seen.releases, 0);
    }
    EXPECT_EQ(seen.releases, 1);
    EXPECT_EQ(seen.last, memory) << "not the first element";
}

TEST(OwnPointer, DeletersOfEveryKind) {
    static int calls;
    calls = 0;
    const auto fresh = [] {
        return tensor_info::contiguous(static_cast<float*>(std::malloc(4 * sizeof(float))), 4);
    };
    EXPECT_TRUE(tensor::own(fresh(), &std::free));
    EXPECT_TRUE(tensor::own(fresh(), [](void* p) { ++calls, std::free(p); }));
    EXPECT_TRUE(tensor::own(fresh(), [n = 1](void* p) { calls += n, std::free(p); }));
    EXPECT_TRUE(tensor::own(fresh(), [n = 1](void* p) mutable { calls += n++, std::free(p); }));
    EXPECT_TRUE(tensor::own(fresh(), std::function<void(void*)>([](void* p) { ++calls, std::free(p); })));
    EXPECT_TRUE(tensor::own(fresh(), [u = std::make_unique<int>(1)](void* p) { calls += *u, std::free(p); }));
    EXPECT_EQ(calls, 5);
}

TEST(OwnPointer, DeleterRunsAtOnceWhenRefused) {
    tally seen;
    float x = 0;
    const auto stateful = [&seen](void* p) { ++seen.releases, seen.last = p; };
    expect_error(tensor::own(tensor_info::contiguous(&x, -1), stateful), errc::malformed, "shape", 0);
    EXPECT_EQ(seen.releases, 1);
    EXPECT_EQ(seen.last, &x);
    static int calls;
    calls = 0;
    expect_error(tensor::own(tensor_info::contiguous(&x, -1), [](void*) { ++calls; }), errc::malformed,
                 "shape", 0);
    EXPECT_EQ(calls, 1);
}

TEST(OwnPointer, DeleterThatThrows) {
    static int calls;
    calls = 0;
    float x = 0;
    const auto stateful = [n = 1](void*) {
        calls += n;
        throw std::runtime_error("a deleter");
    };
    const auto stateless = [](void*) {
        ++calls;
        throw std::runtime_error("a deleter");
    };
    EXPECT_TRUE(tensor::own(tensor_info::contiguous(&x, 1), stateful));
    EXPECT_TRUE(tensor::own(tensor_info::contiguous(&x, 1), stateless));
    EXPECT_FALSE(tensor::own(tensor_info::contiguous(&x, -1), stateful));
    EXPECT_FALSE(tensor::own(tensor_info::contiguous(&x, -1), stateless));
    EXPECT_EQ(calls, 4);
}

/// A deleter of which every move but the first few fails.
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

TEST(OwnPointer, DeleterThatCannotBeMovedRunsAtOnce) {
    for (int moves = 0;; ++moves) {
        ASSERT_LT(moves, 20);
        int calls = 0;
        int good_moves = moves;
        float x = 0;
        bool done = true;
        try {
            ASSERT_TRUE(tensor::own(tensor_info::contiguous(&x, 1), reluctant(&calls, &good_moves)));
        } catch (const std::runtime_error&) {
            done = false;
        }
        EXPECT_EQ(calls, 1) << moves << " moves went well";
        if (done) break;
    }
}

// --- memory something else keeps alive --------------------------------------------------------------

TEST(OwnBorrowed, WithAKeepAlive) {
    tally seen;
    float memory[4] = {};
    {
        const auto t = tensor::own(tensor_info::contiguous(memory, {2, 2}),
                                   keep_alive(memory, tally::on_release, &seen));
        expect_owned(t, memory, {2, 2}, {2, 1});
        EXPECT_EQ(seen.releases, 0);
    }
    EXPECT_EQ(seen.releases, 1);
    EXPECT_EQ(seen.last, memory);
    EXPECT_FALSE(
        tensor::own(tensor_info::contiguous(memory, {-2, 2}), keep_alive(memory, tally::on_release, &seen)));
    EXPECT_EQ(seen.releases, 2);
}

TEST(OwnBorrowed, ForGood) {
    static const float table[3] = {1, 2, 3};
    const auto t = tensor::own(tensor_info::contiguous(table, 3), keep_alive());
    expect_owned(t, table, {3}, {1});
    EXPECT_TRUE(t->is_read_only());
}

// --- layouts and flags ------------------------------------------------------------------------------

alignas(64) float grid[64];

tenon::result<tensor> lent(const tensor_info& info) { return tensor::own(info, keep_alive()); }

TEST(OwnLayout, AsDescribed) {
    expect_owned(lent(tensor_info::contiguous(grid, {4, 4, 4})), grid, {4, 4, 4}, {16, 4, 1});
    expect_owned(lent(tensor_info::contiguous(grid, {})), grid, {}, {});
    expect_owned(lent(tensor_info::strided(grid, {}, {})), grid, {}, {});
    expect_owned(lent(tensor_info::strided(grid, {4, 4}, {1, 4})), grid, {4, 4}, {1, 4});
    expect_owned(lent(tensor_info::strided(grid + 63, {4, 4}, {-16, -1})), grid + 63, {4, 4}, {-16, -1});
    expect_owned(lent(tensor_info::strided(grid, {1000, 4}, {0, 1})), grid, {1000, 4}, {0, 1});
    expect_owned(lent(tensor_info::contiguous(grid, 3).with_byte_offset(8)), grid + 2, {3}, {1});
    expect_owned(lent(tensor_info::contiguous(grid, {0, 3})), grid, {0, 3}, {3, 1});
    expect_owned(lent(tensor_info::contiguous(static_cast<float*>(nullptr), {0, 3})), nullptr, {0, 3},
                 {3, 1});
}

TEST(OwnLayout, EveryRankAndMoves) {
    for (std::size_t rank = 0; rank <= 64; ++rank) {
        ints shape(rank, 1);
        ints strides(rank, 5);
        if (rank > 0) shape[0] = 2;
        auto t = lent(tensor_info::strided(grid, shape, strides));
        ASSERT_TRUE(t) << rank;
        const tensor moved = std::move(*t);
        EXPECT_EQ(to_ints(moved.shape()), shape);
        EXPECT_EQ(to_ints(moved.strides()), strides);
    }
}

TEST(OwnLayout, IsWhatAViewReads) {
    auto t = tensor::own(std::vector<float>{0, 1, 2, 3, 4, 5}, {2, 3});
    ASSERT_TRUE(t);
    const auto v = tenon::view<float, 2>::from(*t);
    ASSERT_TRUE(v) << v.error();
    EXPECT_EQ((*v)(1, 2), 5.0F);
    (*v)(1, 2) = 9;
    EXPECT_EQ(static_cast<const float*>(t->data())[5], 9.0F);
}

TEST(OwnFlags, AsDescribed) {
    const float* const fixed = grid;
    EXPECT_FALSE(lent(tensor_info::contiguous(grid, 4))->is_read_only());
    EXPECT_TRUE(lent(tensor_info::contiguous(fixed, 4))->is_read_only());
    EXPECT_TRUE(lent(tensor_info::contiguous(grid, 4).read_only())->is_read_only());
    EXPECT_FALSE(lent(tensor_info::contiguous(fixed, 4).writable())->is_read_only());
    const auto packed = lent(tensor_info::contiguous(static_cast<void*>(grid), "float4_e2m1fn", 5));
    const auto padded = lent(tensor_info::contiguous(static_cast<void*>(grid), "float4_e2m1fn", 5).padded());
    EXPECT_EQ(packed->nbytes(), 3);
    EXPECT_EQ(padded->nbytes(), 5);
    EXPECT_TRUE(padded->is_subbyte_padded());
}

TEST(OwnFlags, ElementTypesAndDevicesWithoutAName) {
    const auto t =
        lent(tensor_info::contiguous(static_cast<void*>(grid), tenon::dtype(99, 24, 2), 4, {77, 3}));
    ASSERT_TRUE(t) << t.error();
    EXPECT_EQ(t->nbytes(), 24);
    EXPECT_EQ(t->device(), tenon::device(77, 3));
}

// --- what is refused --------------------------------------------------------------------------------

/// Refused with this error, and the memory given back once, in each form that takes a description.
void expect_refused(const tensor_info& info, errc code, std::string_view field, std::int32_t axis = -1) {
    tally seen;
    expect_error(tensor::own(info, keep_alive(info.data(), tally::on_release, &seen)), code, field, axis);
    EXPECT_EQ(seen.releases, 1) << "keep_alive";
    expect_error(tensor::own(info, [&seen](void*) { ++seen.releases; }), code, field, axis);
    EXPECT_EQ(seen.releases, 2) << "deleter";
    const auto held = std::make_shared<int>(0);
    expect_error(tensor::own(std::shared_ptr(held), info), code, field, axis);
    EXPECT_EQ(held.use_count(), 1) << "object";
    expect_error(tensor::own(std::shared_ptr(held), [&](auto&) { return info; }), code, field, axis);
    EXPECT_EQ(held.use_count(), 1) << "object and describe";
}

TEST(OwnRefused, Extents) {
    expect_refused(tensor_info::contiguous(grid, -1), errc::malformed, "shape", 0);
    expect_refused(tensor_info::contiguous(grid, {2, int64_lowest}), errc::malformed, "shape", 1);
    expect_refused(tensor_info::contiguous(grid, {0, 1, -1}), errc::malformed, "shape", 2);
    expect_refused(tensor_info::contiguous(grid, {int64_highest, 2}), errc::malformed, "shape");
    expect_refused(tensor_info::contiguous(grid, int64_highest / 2), errc::malformed, "shape");
    expect_refused(tensor_info::contiguous(grid, ints(64, 2)), errc::malformed, "shape");
    expect_refused(tensor_info::contiguous(grid, ints(65, 1)), errc::refused, "shape");
}

TEST(OwnRefused, Strides) {
    expect_refused(tensor_info::strided(grid, {2, 2}, 1), errc::malformed, "strides");
    expect_refused(tensor_info::strided(grid, {2, 2}, {1, 1, 1}), errc::malformed, "strides");
    expect_refused(tensor_info::strided(grid, 2, {}), errc::malformed, "strides");
    expect_refused(tensor_info::strided(grid, {}, 1), errc::malformed, "strides");
    expect_refused(tensor_info::strided(grid, 3, int64_highest), errc::malformed, "strides");
    expect_refused(tensor_info::strided(grid, 2, int64_lowest), errc::malformed, "strides");
    expect_refused(tensor_info::strided(grid, 2, -(std::int64_t{1} << 60U)), errc::malformed, "strides");
}

TEST(OwnRefused, Addresses) {
    expect_refused(tensor_info::contiguous(static_cast<float*>(nullptr), 1), errc::malformed, "data");
    expect_refused(tensor_info::contiguous(static_cast<float*>(nullptr), {}), errc::malformed, "data");
    expect_refused(tensor_info::contiguous(static_cast<void*>(grid), "float32", 2).with_byte_offset(2),
                   errc::malformed, "data");
    expect_refused(tensor_info::contiguous(address(0x10001), "float32", 2), errc::malformed, "data");
    expect_refused(tensor_info::contiguous(grid, 1).with_byte_offset(UINT64_MAX - 3), errc::malformed,
                   "byte_offset");
}

TEST(OwnRefused, ElementTypesAndDevices) {
    void* const raw = grid;
    expect_refused(tensor_info::contiguous(raw, "float33", 1), errc::refused, "dtype");
    expect_refused(tensor_info::contiguous(raw, tenon::dtype(2, 0), 1), errc::malformed, "dtype");
    expect_refused(tensor_info::contiguous(raw, tenon::dtype(2, 32, 0), 1), errc::malformed, "dtype");
    expect_refused(tensor_info::contiguous(grid, 1, {dc::cuda, -1}), errc::malformed, "device");
}

}  // namespace
