// tests/cpp/tensor_info_test.cpp: descriptions of memory: each way to write one, what is kept of it, and the
// faults only it can see.

#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <tenon/tensor/tensor_info.hpp>

#include "support.hpp"

namespace user {
struct by_const {};
struct by_reference {};
struct other_type {};
struct undescribed {};
inline tenon::tensor_info describe(const by_const&) {
    return tenon::tensor_info::contiguous(static_cast<float*>(nullptr), 0);
}
inline tenon::tensor_info describe(by_reference&) {
    return tenon::tensor_info::contiguous(static_cast<float*>(nullptr), 0);
}
inline int describe(const other_type&) { return 0; }
}  // namespace user

namespace {

using namespace tenon_test;
using tenon::dtype;
using tenon::element_type;
using tenon::errc;
using tenon::tensor_info;
namespace abi = tenon::abi;
namespace tc = tenon::abi::type_code;
namespace dc = tenon::abi::device_code;

static_assert(!std::is_default_constructible_v<tensor_info>);
static_assert(std::is_nothrow_copy_constructible_v<tensor_info>);

static_assert(tenon::describable<user::by_const> && tenon::describable<user::by_reference>);
static_assert(!tenon::describable<user::undescribed> && !tenon::describable<user::other_type>);
static_assert(tenon::describable<const user::by_const> && !tenon::describable<const user::by_reference>);
static_assert(!tenon::describable<int> && !tenon::describable<std::vector<float>>);

alignas(64) float memory[64];
const float fixed[4] = {};

ints shape_of(const tensor_info& info) { return to_ints(info.shape()); }
/// Null strides read as none.
maybe_strides strides_of(const tensor_info& info) {
    const abi::dl_tensor t = info.to_abi();
    if (t.strides == nullptr) return {};
    return ints(t.strides, t.strides + t.ndim);
}

// --- element types ----------------------------------------------------------------------------------

TEST(ElementType, ByValueAndByName) {
    EXPECT_EQ(element_type(dtype(tc::bfloat, 16)).type, dtype(tc::bfloat, 16));
    EXPECT_EQ(element_type("bfloat16").type, dtype(tc::bfloat, 16));
    EXPECT_EQ(element_type(std::string_view("float4_e2m1fn")).type, dtype(tc::float4_e2m1fn, 4));
    EXPECT_TRUE(element_type("float32").known);
    EXPECT_TRUE(element_type(dtype(99, 24, 7)).known) << "a value needs no name";
    for (const char* name : {"", "float", "float33", "Float32", "float32 ", "torch.float32"})
        EXPECT_FALSE(element_type(name).known) << name;
}

// --- what is described ------------------------------------------------------------------------------

TEST(TensorInfo, ContiguousOfATypedPointer) {
    const auto info = tensor_info::contiguous(memory, {2, 3});
    EXPECT_EQ(info.data(), memory);
    EXPECT_EQ(info.dtype(), tenon::dtype_of<float>);
    EXPECT_EQ(info.device(), tenon::device{});
    EXPECT_EQ(shape_of(info), (ints{2, 3}));
    EXPECT_EQ(info.flags(), 0U);
    EXPECT_FALSE(strides_of(info)) << "row-major strides are left to the validator";
    EXPECT_EQ(info.to_abi().byte_offset, 0U);
    EXPECT_EQ(info.to_abi().data, memory);
    EXPECT_TRUE(info.check());
}

TEST(TensorInfo, EachElementTypeOfCxx) {
    std::int8_t a{};
    std::uint64_t b{};
    std::complex<double> c{};
    tenon::bool8 d{};
    bool e{};
    EXPECT_EQ(tensor_info::contiguous(&a, {}).dtype(), dtype(tc::int_, 8));
    EXPECT_EQ(tensor_info::contiguous(&b, {}).dtype(), dtype(tc::uint, 64));
    EXPECT_EQ(tensor_info::contiguous(&c, {}).dtype(), dtype(tc::complex, 128));
    EXPECT_EQ(tensor_info::contiguous(&d, {}).dtype(), dtype(tc::bool_, 8));
    EXPECT_EQ(tensor_info::contiguous(&e, {}).dtype(), dtype(tc::bool_, 8));
}

TEST(TensorInfo, ContiguousOfAnUntypedPointer) {
    void* const raw = memory;
    const void* const raw_fixed = fixed;
    const auto named = tensor_info::contiguous(raw, "float16", {2, 3}, {dc::cuda, 1});
    EXPECT_EQ(named.dtype(), dtype(tc::float_, 16));
    EXPECT_EQ(named.device(), tenon::device(dc::cuda, 1));
    EXPECT_EQ(named.flags(), 0U);
    const auto by_value = tensor_info::contiguous(raw_fixed, dtype(tc::int_, 32), 4);
    EXPECT_EQ(by_value.dtype(), dtype(tc::int_, 32));
    EXPECT_EQ(by_value.data(), fixed);
    EXPECT_EQ(by_value.flags(), abi::flag::read_only);
}

TEST(TensorInfo, Strided) {
    const auto typed = tensor_info::strided(memory, {2, 3}, {-1, 0});
    ASSERT_TRUE(strides_of(typed));
    EXPECT_EQ(*strides_of(typed), (ints{-1, 0}));
    EXPECT_EQ(shape_of(typed), (ints{2, 3}));
    EXPECT_EQ(typed.flags(), 0U);
    const auto untyped =
        tensor_info::strided(static_cast<const void*>(fixed), "int32", {2}, {2}, {dc::rocm, 3});
    EXPECT_EQ(*strides_of(untyped), ints{2});
    EXPECT_EQ(untyped.flags(), abi::flag::read_only);
    EXPECT_EQ(untyped.device(), tenon::device(dc::rocm, 3));
    EXPECT_TRUE(strides_of(tensor_info::strided(memory, {}, {}))) << "given, although there are none";
}

TEST(TensorInfo, SingleElement) {
    const auto info = tensor_info::contiguous(memory, {});
    EXPECT_EQ(info.to_abi().ndim, 0);
    EXPECT_TRUE(info.shape().empty());
    EXPECT_TRUE(info.check());
}

TEST(TensorInfo, EveryRank) {
    for (std::size_t rank = 0; rank <= 64; ++rank) {
        SCOPED_TRACE(rank);
        ints shape(rank);
        ints strides(rank);
        for (std::size_t i = 0; i < rank; ++i) {
            shape[i] = static_cast<std::int64_t>(i) + 1;
            strides[i] = 1000 - static_cast<std::int64_t>(i);
        }
        const auto info = tensor_info::strided(memory, shape, strides);
        // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): the copy is tested
        const tensor_info copy = info;
        auto assigned = tensor_info::contiguous(fixed, ints(64 - rank, 7)).read_only();
        assigned = copy;
        for (const tensor_info* each : {&info, &copy, static_cast<const tensor_info*>(&assigned)}) {
            EXPECT_TRUE(each->check());
            EXPECT_EQ(shape_of(*each), shape);
            EXPECT_EQ(*strides_of(*each), strides);
            EXPECT_EQ(each->data(), memory);
            EXPECT_EQ(each->flags(), 0U);
        }
    }
}

TEST(TensorInfo, HoldsItsOwnAxes) {
    const auto describe_elsewhere = [] {
        auto shape = std::make_unique<ints>(ints{2, 3});
        auto strides = std::make_unique<ints>(ints{30, 10});
        return std::make_unique<tensor_info>(tensor_info::strided(memory, *shape, *strides));
    };
    auto there = describe_elsewhere();
    const tensor_info here = *there;
    there.reset();  // to_abi points into the copy, not into what it was copied from
    EXPECT_EQ(shape_of(here), (ints{2, 3}));
    EXPECT_EQ(*strides_of(here), (ints{30, 10}));
    const abi::dl_tensor t = here.to_abi();
    EXPECT_GE(static_cast<const void*>(t.shape), static_cast<const void*>(&here));
    EXPECT_LT(static_cast<const void*>(t.shape), static_cast<const void*>(&here + 1));
}

TEST(TensorInfo, SelfAssignment) {
    auto info = tensor_info::strided(memory, {2, 3}, {3, 1});
    const tensor_info& same = info;
    info = same;
    EXPECT_EQ(shape_of(info), (ints{2, 3}));
    EXPECT_EQ(*strides_of(info), (ints{3, 1}));
}

// --- read-only, writable, padded, offset ------------------------------------------------------------

TEST(TensorInfoFlags, FromTheConstnessOfThePointer) {
    EXPECT_EQ(tensor_info::contiguous(memory, 4).flags(), 0U);
    EXPECT_EQ(tensor_info::contiguous(fixed, 4).flags(), abi::flag::read_only);
    EXPECT_EQ(tensor_info::strided(memory, 4, 1).flags(), 0U);
    EXPECT_EQ(tensor_info::strided(fixed, 4, 1).flags(), abi::flag::read_only);
}

TEST(TensorInfoFlags, SaidInWords) {
    const auto info = tensor_info::contiguous(memory, 4);
    EXPECT_EQ(info.read_only().flags(), abi::flag::read_only);
    EXPECT_EQ(info.writable().flags(), 0U);
    EXPECT_EQ(info.padded().flags(), abi::flag::subbyte_padded);
    EXPECT_EQ(info.padded().read_only().flags(), abi::flag::subbyte_padded | abi::flag::read_only);
    EXPECT_EQ(info.padded().read_only().writable().flags(), abi::flag::subbyte_padded);
    EXPECT_EQ(info.read_only().read_only().writable().flags(), 0U);
    EXPECT_EQ(tensor_info::contiguous(fixed, 4).writable().flags(), 0U);
    EXPECT_EQ(info.flags(), 0U) << "each makes a new one";
}

TEST(TensorInfoOffset, ReplacesNotAdds) {
    const auto info = tensor_info::strided(memory, {2, 2}, {4, 1}).read_only();
    const auto moved = info.with_byte_offset(8);
    EXPECT_EQ(moved.to_abi().byte_offset, 8U);
    EXPECT_EQ(moved.data(), memory) << "as it was given";
    EXPECT_EQ(moved.with_byte_offset(16).to_abi().byte_offset, 16U);
    EXPECT_EQ(info.to_abi().byte_offset, 0U);
    EXPECT_EQ(moved.flags(), abi::flag::read_only);
    EXPECT_EQ(*strides_of(moved), (ints{4, 1}));
    EXPECT_TRUE(moved.check());
}

// --- faults -----------------------------------------------------------------------------------------

TEST(TensorInfoFault, UnknownName) {
    void* const raw = memory;
    for (const char* name : {"", "float33", "torch.float32"}) {
        const auto e = tensor_info::contiguous(raw, name, {4}).check();
        expect_error(e.error(), errc::refused, "dtype");
        EXPECT_NE(e.error().message().find("bfloat16"), std::string::npos) << "an example of what would do";
    }
}

TEST(TensorInfoFault, TooManyAxes) {
    for (const std::size_t rank : {std::size_t{65}, std::size_t{500}}) {
        const auto flat = tensor_info::contiguous(memory, ints(rank, 1)).check();
        expect_error(flat.error(), errc::refused, "shape");
        EXPECT_EQ(flat.error().got, static_cast<std::int64_t>(rank));
        EXPECT_EQ(flat.error().wanted, 64);
        expect_error(tensor_info::strided(memory, ints(rank, 1), ints(rank, 1)).check().error(),
                     errc::refused, "shape");
    }
}

TEST(TensorInfoFault, OneStrideForEachAxis) {
    const std::vector<ints> lists = {{}, {1}, {1, 1}, {1, 1, 1}, ints(64, 1), ints(65, 1), ints(70, 1)};
    for (const ints& shape : lists)
        for (const ints& strides : lists) {
            if (shape.size() == strides.size()) continue;
            const tensor_info info = tensor_info::strided(memory, shape, strides);
            const auto e = tensor_info(info).check();  // the fault is copied along
            ASSERT_FALSE(e) << shape.size() << " axes, " << strides.size() << " strides";
            expect_error(e.error(), errc::malformed, "strides");
            EXPECT_EQ(e.error().got, static_cast<std::int64_t>(strides.size()));
        }
}

TEST(TensorInfoFault, SurvivesTheChainedWords) {
    const auto bad = tensor_info::contiguous(static_cast<void*>(memory), "nothing", 1);
    expect_error(bad.padded().writable().with_byte_offset(4).check().error(), errc::refused, "dtype");
    auto good = tensor_info::contiguous(memory, 1);
    good = bad;
    EXPECT_FALSE(good.check());
    good = tensor_info::contiguous(memory, 1);
    EXPECT_TRUE(good.check()) << "nor does it stay";
}

TEST(TensorInfoAlignment, EveryAddressOfEveryType) {
    struct {
        const char* type;
        std::uintptr_t alignment;
    } const cases[] = {{"uint8", 1},         {"bool", 1},      {"float8_e4m3fn", 1}, {"float4_e2m1fn", 1},
                       {"float6_e2m3fn", 1}, {"float16", 2},   {"bfloat16", 2},      {"int32", 4},
                       {"float64", 8},       {"complex64", 4}, {"complex128", 8}};
    for (const auto& c : cases)
        for (std::uintptr_t shift = 0; shift < 32; ++shift) {
            const auto ok = tensor_info::contiguous(address(0x10000 + shift), c.type, 3).check();
            const auto by_offset =
                tensor_info::contiguous(address(0x10000), c.type, 3).with_byte_offset(shift).check();
            ASSERT_EQ(static_cast<bool>(ok), shift % c.alignment == 0) << c.type << " at " << shift;
            ASSERT_EQ(static_cast<bool>(by_offset), shift % c.alignment == 0) << c.type << " at " << shift;
            if (!ok) {
                expect_error(ok.error(), errc::malformed, "data");
                EXPECT_EQ(ok.error().got, static_cast<std::int64_t>(shift % c.alignment));
            }
        }
}

TEST(TensorInfoAlignment, OfVectorsIsThatOfTheirNumbers) {
    EXPECT_TRUE(tensor_info::contiguous(address(0x10004), dtype(tc::float_, 32, 4), 3).check());
    EXPECT_FALSE(tensor_info::contiguous(address(0x10002), dtype(tc::float_, 32, 4), 3).check());
    EXPECT_TRUE(tensor_info::contiguous(address(0x10001), dtype(tc::int_, 24), 3).check());
    EXPECT_TRUE(tensor_info::contiguous(address(0x10001), dtype(tc::int_, 0), 3).check())
        << "the validator's business";
}

TEST(TensorInfoAlignment, PointerAndOffsetTogether) {
    EXPECT_TRUE(tensor_info::contiguous(address(0x10002), "float32", 3).with_byte_offset(2).check());
    EXPECT_FALSE(tensor_info::contiguous(address(0x10002), "float32", 3).with_byte_offset(4).check());
}

TEST(TensorInfoAlignment, NobodyLooksWhereThereIsNoElement) {
    EXPECT_TRUE(tensor_info::contiguous(address(0x10001), "float32", 0).check());
    EXPECT_TRUE(tensor_info::contiguous(address(0x10001), "float32", {3, 0, 2}).check());
    EXPECT_FALSE(tensor_info::contiguous(address(0x10001), "float32", {}).check()) << "{} is one element";
}

TEST(TensorInfoAlignment, HandlesAreNoAddresses) {
    for (const auto kind : {dc::opencl, dc::vulkan, dc::metal, dc::webgpu})
        EXPECT_TRUE(tensor_info::contiguous(address(0x10001), "float32", 3, {kind, 0}).check()) << kind;
    for (const auto kind : {dc::cpu, dc::cuda, dc::cuda_host, dc::rocm, dc::oneapi})
        EXPECT_FALSE(tensor_info::contiguous(address(0x10001), "float32", 3, {kind, 0}).check()) << kind;
}

}  // namespace
