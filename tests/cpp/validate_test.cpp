// tests/cpp/validate_test.cpp: every way a description can be wrong is named, and what is merely odd is
// accepted.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <tenon/tensor/tensor.hpp>
#include <tenon/tensor/validate.hpp>

#include "support.hpp"

namespace {

using namespace tenon_test;
using tenon::device;
using tenon::dtype;
using tenon::errc;
namespace abi = tenon::abi;
namespace tc = tenon::abi::type_code;
namespace dc = tenon::abi::device_code;

alignas(64) float memory[16];

struct hostile {
    std::string name;
    errc code;
    std::string field;
    std::int32_t axis;
    void (*break_it)(spec&);                   ///< before the struct is made
    void (*twist)(abi::dl_tensor&) = nullptr;  ///< afterwards, for what a spec cannot say
};

std::vector<hostile> hostiles() {
    constexpr auto bad = errc::malformed;
    constexpr auto no = errc::refused;
    void (*const nothing)(spec&) = [](spec&) {};
    return {
        // Rank and arrays.
        {"ndim -1", bad, "ndim", -1, nothing, [](auto& t) { t.ndim = -1; }},
        {"ndim lowest", bad, "ndim", -1, nothing, [](auto& t) { t.ndim = INT32_MIN; }},
        {"ndim 65", no, "ndim", -1, [](auto& s) { s.shape = ints(65, 1); }},
        {"ndim huge", no, "ndim", -1, nothing, [](auto& t) { t.ndim = INT32_MAX; }},
        {"ndim huge, null shape", no, "ndim", -1, nothing,
         [](auto& t) { t.ndim = INT32_MAX, t.shape = nullptr; }},
        {"ndim -1, null shape", bad, "ndim", -1, nothing, [](auto& t) { t.ndim = -1, t.shape = nullptr; }},
        {"null shape", bad, "shape", -1, nothing, [](auto& t) { t.shape = nullptr; }},
        {"small shape", bad, "shape", -1, nothing,
         [](auto& t) { t.shape = static_cast<std::int64_t*>(address(4095)); }},
        {"small strides", bad, "strides", -1, nothing,
         [](auto& t) { t.strides = static_cast<std::int64_t*>(address(8)); }},
        // Extents.
        {"negative extent", bad, "shape", 0, [](auto& s) { s.shape = {-1, 3}; }},
        {"two negative extents", bad, "shape", 0, [](auto& s) { s.shape = {-2, -3}; }},
        {"last extent negative", bad, "shape", 2, [](auto& s) { s.shape = {2, 3, -1}; }},
        {"lowest extent", bad, "shape", 1, [](auto& s) { s.shape = {2, int64_lowest}; }},
        {"lowest extent with strides", bad, "shape", 0,
         [](auto& s) { s.shape = {int64_lowest}, s.strides = ints{-1}; }},
        {"negative extents with strides", bad, "shape", 0,
         [](auto& s) { s.shape = {-2, -3}, s.strides = ints{3, 1}; }},
        {"negative extent after zero", bad, "shape", 1, [](auto& s) { s.shape = {0, -1}; }},
        {"negative extent before zero", bad, "shape", 0, [](auto& s) { s.shape = {-1, 0}; }},
        {"count wraps to zero", bad, "shape", -1, [](auto& s) { s.shape = {1LL << 32, 1LL << 32, 16}; }},
        {"count wraps to one", bad, "shape", -1,
         [](auto& s) { s.shape = {3, static_cast<std::int64_t>(0x5555555555555555LL), 3}; }},
        {"count 2^63", bad, "shape", -1, [](auto& s) { s.shape = {1LL << 62, 2}, s.type = {tc::uint, 8}; }},
        {"bytes wrap", bad, "shape", -1, [](auto& s) { s.shape = {1LL << 62}; }},
        {"bytes wrap behind stride 0", bad, "shape", -1,
         [](auto& s) { s.shape = {1LL << 62}, s.strides = ints{0}; }},
        // Strides.
        {"stride * itemsize wraps", bad, "strides", -1,
         [](auto& s) { s.shape = {2}, s.strides = ints{1LL << 62}; }},
        {"negative stride * itemsize wraps", bad, "strides", -1,
         [](auto& s) { s.shape = {2}, s.strides = ints{-(1LL << 62)}; }},
        {"extent and stride of 40 bits", bad, "strides", -1,
         [](auto& s) { s.shape = {1LL << 40}, s.strides = ints{1LL << 40}; }},
        {"extent and stride of 40 bits downwards", bad, "strides", -1,
         [](auto& s) { s.shape = {1LL << 40}, s.strides = ints{-(1LL << 40)}; }},
        {"lowest stride", bad, "strides", -1, [](auto& s) { s.shape = {2}, s.strides = ints{int64_lowest}; }},
        {"lowest stride of bytes", bad, "strides", -1,
         [](auto& s) { s.shape = {2}, s.strides = ints{int64_lowest}, s.type = {tc::uint, 8}; }},
        {"span of axes wraps", bad, "strides", -1,
         [](auto& s) { s.shape = {2, 2}, s.strides = ints{int64_highest, 1}, s.type = {tc::uint, 8}; }},
        {"last element ends past 2^63", bad, "strides", -1,
         [](auto& s) { s.shape = {2}, s.strides = ints{int64_highest}, s.type = {tc::uint, 8}; }},
        {"element below address zero", bad, "strides", -1,
         [](auto& s) { s.data = address(4096), s.shape = {2}, s.strides = ints{-2048}; }},
        {"element past the last address", bad, "strides", -1,
         [](auto& s) { s.data = address(UINTPTR_MAX - 4095), s.shape = {2}, s.strides = ints{2048}; }},
        {"whole element past the last address", bad, "strides", -1,
         [](auto& s) { s.data = address(UINTPTR_MAX - 3), s.shape = {2}, s.strides = ints{0}; }},
        // Pointer.
        {"data + byte_offset wraps", bad, "byte_offset", -1,
         [](auto& s) { s.byte_offset = UINT64_MAX - 64; }},
        {"null data", bad, "data", -1, [](auto& s) { s.data = nullptr; }},
        {"null data with an offset", bad, "data", -1,
         [](auto& s) { s.data = nullptr, s.byte_offset = 4096; }},
        {"null data, 0-d", bad, "data", -1, [](auto& s) { s.data = nullptr, s.shape.clear(); }},
        {"null data on a device", bad, "data", -1,
         [](auto& s) { s.data = nullptr, s.where = {dc::cuda, 0}; }},
        {"null handle", bad, "data", -1, [](auto& s) { s.data = nullptr, s.where = {dc::metal, 0}; }},
        {"element before a handle", bad, "strides", -1,
         [](auto& s) { s.where = {dc::metal, 0}, s.byte_offset = 3, s.shape = {2}, s.strides = ints{-1}; }},
        // Flags.
        {"unknown flag 8", no, "flags", -1, [](auto& s) { s.flags = 8; }},
        {"unknown flag beside known", no, "flags", -1, [](auto& s) { s.flags = 7 | 16; }},
        {"unknown flag 2^63", no, "flags", -1, [](auto& s) { s.flags = 1ULL << 63; }},
        // Element types.
        {"fp8 of 16 bits", bad, "dtype", -1, [](auto& s) { s.type = {tc::float8_e5m2, 16}; }},
        {"lanes 0", bad, "dtype", -1, [](auto& s) { s.type = {tc::float_, 32, 0}; }},
        {"bits 0", bad, "dtype", -1, [](auto& s) { s.type = {tc::float_, 0}; }},
        {"bits 0 of unknown code", bad, "dtype", -1, [](auto& s) { s.type = {77, 0}; }},
        // The standard says: stop. Not even carried opaquely.
        {"fp4 of 8 bits", bad, "dtype", -1, [](auto& s) { s.type = {tc::float4_e2m1fn, 8}; }},
        {"fp4 of 6 bits", bad, "dtype", -1, [](auto& s) { s.type = {tc::float4_e2m1fn, 6}; }},
        {"fp6 of 8 bits", bad, "dtype", -1, [](auto& s) { s.type = {tc::float6_e2m3fn, 8}; }},
        {"fp6 of 4 bits", bad, "dtype", -1, [](auto& s) { s.type = {tc::float6_e3m2fn, 4}; }},
        {"fp4 of 8 bits, 2 lanes", bad, "dtype", -1, [](auto& s) { s.type = {tc::float4_e2m1fn, 8, 2}; }},
        // Devices.
        {"device 0", bad, "device", -1, [](auto& s) { s.where = {0, 0}; }},
        {"device -1", bad, "device", -1, [](auto& s) { s.where = {-1, 0}; }},
        {"cpu id -1", bad, "device", -1, [](auto& s) { s.where = {dc::cpu, -1}; }},
        {"cuda id -1", bad, "device", -1, [](auto& s) { s.where = {dc::cuda, -1}; }},
        {"unknown id lowest", bad, "device", -1, [](auto& s) { s.where = {99, INT32_MIN}; }},
    };
}

spec sound() { return {.data = memory, .shape = {4, 4}, .strides = ints{4, 1}}; }

/// The case's spec. Strides follow the shape unless the case says its own: as a null pointer, or spelt out.
spec broken_spec(const hostile& h, bool spell_strides_out = false) {
    spec s = sound();
    s.strides.reset();
    h.break_it(s);
    if (spell_strides_out && !s.strides) {
        s.strides = ints(s.shape.size());
        tenon::fill_row_major(s.shape, s.strides->data());
    }
    return s;
}

template <class Fake>
void expect_refused(const hostile& h, bool spell_strides_out) {
    SCOPED_TRACE(h.name + (Fake::is_versioned ? ", versioned" : ", legacy") +
                 (spell_strides_out ? ", strides" : ""));
    Fake producer(broken_spec(h, spell_strides_out));
    if (h.twist != nullptr) h.twist(producer.managed.tensor);
    {
        tenon::foreign received(&producer.managed);
        expect_error(tenon::tensor::take(received), h.code, h.field, h.axis);
        // Refused means untouched: still there, not released, and as good for a second look.
        EXPECT_EQ(received.get(), &producer.managed);
        EXPECT_EQ(producer.releases(), 0);
        expect_error(tenon::tensor::take(received), h.code, h.field, h.axis);
        EXPECT_EQ(producer.releases(), 0);
    }
    EXPECT_EQ(producer.releases(), 1);
}

template <class Fake>
void expect_refused(const hostile& h) {
    expect_refused<Fake>(h, false);
    expect_refused<Fake>(h, true);
}

TEST(Validate, TheBaseOfEveryHostileCaseIsSound) {
    // Otherwise a case could be refused for another reason than its own.
    fake_versioned producer(sound());
    tenon::foreign received(&producer.managed);
    EXPECT_TRUE(tenon::tensor::take(received));
}

TEST(Validate, HostileVersionedStructs) {
    for (const auto& h : hostiles()) expect_refused<fake_versioned>(h);
}

TEST(Validate, HostileLegacyStructs) {
    for (const auto& h : hostiles())
        if (broken_spec(h).flags == 0) expect_refused<fake_legacy>(h);
}

TEST(Validate, KindsOfElementsWithoutANameAreCarried) {
    // F44: a newer DLPack's, vectors, widths nobody has: so many bits, for others to interpret.
    for (const tenon::dtype type :
         {tenon::dtype{18, 32}, tenon::dtype{255, 8}, tenon::dtype{tc::float_, 32, 2},
          tenon::dtype{tc::float_, 32, 65535}, tenon::dtype{tc::bool_, 1}, tenon::dtype{tc::float_, 4},
          tenon::dtype{tc::int_, 24}, tenon::dtype{tc::float_, 128}, tenon::dtype{tc::float_, 8},
          tenon::dtype{tc::bool_, 32}}) {
        spec s = sound();
        s.type = type;
        fake_versioned producer(s);
        tenon::foreign received(&producer.managed);
        const auto taken = tenon::tensor::take(received);
        ASSERT_TRUE(taken) << taken.error();
        EXPECT_EQ(taken->dtype(), type);
        EXPECT_EQ(taken->nbytes(), (16 * std::int64_t{type.bits} * type.lanes + 7) / 8);
    }
}

TEST(Validate, KindsOfDevicesWithoutANameAreCarried) {
    for (const tenon::device where : {tenon::device{5, 0}, tenon::device{99, 0}}) {
        spec s = sound();
        s.where = where;
        fake_versioned producer(s);
        tenon::foreign received(&producer.managed);
        const auto taken = tenon::tensor::take(received);
        ASSERT_TRUE(taken) << taken.error();
        EXPECT_EQ(taken->device(), where);
        EXPECT_FALSE(taken->device().is_host_accessible());
    }
}

TEST(Validate, GiantElementsFarBelowAreCountedInFull) {
    // 2 MB elements, reaching 2^67 bytes down.
    const spec s{.data = memory,
                 .shape = {1 << 20, 1 << 20},
                 .strides = ints{-(1 << 25), -(1 << 25)},
                 .type = {tc::float_, 255, 65535}};
    expect_error(import(s), errc::malformed, "strides");
}

TEST(Validate, ErrorsSayWhatCame) {
    const auto why = [](spec s) { return import(std::move(s)).error(); };
    spec s = sound();
    s.shape = {4, -7};
    EXPECT_EQ(why(s).got, -7);
    s = sound();
    s.shape = ints(65, 1);
    s.strides.reset();
    EXPECT_EQ(why(s).got, 65);
    EXPECT_EQ(why(s).wanted, 64);
    s = sound();
    s.flags = 0x8000000000000009ULL;
    EXPECT_NE(why(s).message().find("0x8000000000000008"), std::string::npos) << why(s);
    s = sound();
    s.type = {tc::float8_e4m3, 24};
    EXPECT_EQ(why(s).got, 24);
    s = sound();
    s.where = {-3, 0};
    EXPECT_EQ(why(s).got, -3);
    s = sound();
    s.data = nullptr;
    EXPECT_EQ(why(s).got, 16);
}

// --- everything at once ----------------------------------------------------------------------------

__extension__ using wide = __int128;

/// Whether elements of `item` bytes laid out so can all be addressed; in arithmetic wide enough to be plain.
bool is_addressable(const spec& s, std::int64_t item) {
    constexpr wide limit = int64_highest;
    wide count = 1;
    wide low = 0;
    wide high = 0;
    for (const std::int64_t extent : s.shape)
        if (extent < 0) return false;
    if (std::find(s.shape.begin(), s.shape.end(), 0) != s.shape.end()) return true;
    for (std::size_t i = 0; i < s.shape.size(); ++i) {
        const wide reach = static_cast<wide>(s.shape[i] - 1) * (*s.strides)[i];
        (reach < 0 ? low : high) += reach;
        count *= s.shape[i];
        // In elements, then in bytes, with the last element whole.
        if (count > limit || high > limit || low < -limit - 1) return false;
    }
    if (count * item > limit || (high + 1) * item > limit || low * item < -limit - 1) return false;
    const wide base = reinterpret_cast<std::uintptr_t>(s.data);
    const wide first = base + static_cast<wide>(s.byte_offset);
    const wide top = static_cast<wide>(UINT64_MAX);
    return base != 0 && first <= top && first + low * item >= 0 && first + (high + 1) * item <= top;
}

TEST(Validate, AgreesWithWideArithmetic) {
    std::mt19937_64 rng(11);
    const auto draw = [&](std::int64_t from, std::int64_t to) {
        return std::uniform_int_distribution<std::int64_t>(from, to)(rng);
    };
    // Near a power of two, of at most `bits` bits: most limits, ours included, are there.
    const auto edgy = [&](std::int64_t bits) {
        const std::int64_t v = (std::int64_t{1} << draw(0, bits)) + draw(-1, 1);
        return draw(0, 5) == 0 ? draw(0, 3) : v;
    };
    static constexpr dtype types[] = {{tc::uint, 8}, {tc::float_, 32}, {tc::float_, 64}, {tc::complex, 128}};
    int accepted = 0;
    int refused = 0;
    for (int round = 0; round < 60000; ++round) {
        const auto rank = static_cast<std::size_t>(draw(0, 7));
        spec s{.data = address(static_cast<std::uintptr_t>(edgy(62)) * (draw(0, 9) == 0 ? 3U : 1U)),
               .shape = ints(rank),
               .strides = ints(rank),
               .type = types[round % 4],
               .where = {draw(0, 3) == 0  ? dc::rocm
                         : round % 2 == 0 ? dc::cpu
                                          : dc::cuda,
                         0},
               .byte_offset = draw(0, 2) == 0 ? static_cast<std::uint64_t>(edgy(62)) << draw(0, 1) : 0};
        if (draw(0, 9) == 0) s.byte_offset = UINT64_MAX - s.byte_offset;
        const std::int64_t bits =
            rank == 0 ? 1 : draw(1, 62) / static_cast<std::int64_t>(draw(1, 2) == 1 ? rank : 1);
        for (std::size_t i = 0; i < rank; ++i) {
            s.shape[i] = edgy(std::max<std::int64_t>(bits, 1));
            (*s.strides)[i] =
                edgy(draw(0, 1) == 0 ? std::max<std::int64_t>(bits, 1) : 40) * (draw(0, 2) == 0 ? -1 : 1);
            if (draw(0, 40) == 0) (*s.strides)[i] = draw(0, 1) == 0 ? int64_lowest : int64_highest;
            if (draw(0, 400) == 0) s.shape[i] = draw(0, 1) == 0 ? int64_lowest : -1;
        }
        const bool good = is_addressable(s, types[round % 4].itemsize());
        const auto t = import(s);
        ASSERT_EQ(t.has_value(), good)
            << testing::PrintToString(s.shape) << testing::PrintToString(*s.strides) << ' ' << s.data << " + "
            << s.byte_offset << " item " << types[round % 4].itemsize() << (t ? "" : t.error().message());
        if (!good) {
            ++refused;
            continue;
        }
        ++accepted;
        ASSERT_EQ(to_ints(t->shape()), s.shape);
        ASSERT_EQ(to_ints(t->strides()), *s.strides);
        ASSERT_EQ(t->size(), *tenon::element_count(s.shape));
        ASSERT_EQ(t->dtype(), s.type);
        ASSERT_EQ(t->device(), s.where);
        ASSERT_EQ(t->base(), s.data);
        ASSERT_EQ(t->byte_offset(), s.byte_offset);
    }
    EXPECT_GT(accepted, 5000);
    EXPECT_GT(refused, 5000);
}

TEST(Validate, EveryWidthOfExtentsAndStrides) {
    // All axes alike, at every pair of widths: each limit is crossed, exactly, at each rank.
    int accepted = 0;
    for (std::size_t rank = 1; rank <= 6; ++rank)
        for (int extent_bits = 0; extent_bits < 63; ++extent_bits)
            for (int stride_bits = 0; stride_bits < 63; ++stride_bits)
                for (const int less : {0, 1})
                    for (const int sign : {1, -1})
                        for (const dtype type : {dtype{tc::uint, 8}, dtype{tc::complex, 128}}) {
                            const std::int64_t extent = (std::int64_t{1} << extent_bits) - less;
                            const std::int64_t stride = ((std::int64_t{1} << stride_bits) - less) * sign;
                            const spec s{.data = address(1ULL << 59),
                                         .shape = ints(rank, extent),
                                         .strides = ints(rank, stride),
                                         .type = type};
                            const bool good = is_addressable(s, type.itemsize());
                            ASSERT_EQ(import(s).has_value(), good) << rank << " axes of " << extent << " by "
                                                                   << stride << ", item " << type.itemsize();
                            accepted += good;
                        }
    EXPECT_GT(accepted, 10000);
    EXPECT_LT(accepted, 60000);
}

// --- the quick check ---------------------------------------------------------------------------------

struct checked_tensor : tenon::tensor_ref {
    std::int64_t storage[128];

    [[nodiscard]] bool has_axes_of(spec& s) const {
        return std::equal(s.shape.begin(), s.shape.end(), storage) &&
               std::equal(s.strides->begin(), s.strides->end(), storage + s.shape.size());
    }
};

/// What the quick check and the whole one say of a layout.
struct verdicts {
    bool quick, whole;
    std::int64_t quick_size, whole_size;
};

verdicts both_checks(spec s) {
    checked_tensor quickly, wholly, checked;
    const abi::dl_tensor t = describe(s);
    const std::size_t n = s.shape.size();
    const auto axis = [&](std::size_t i) { return tenon::detail::raw_axis{s.shape[i], (*s.strides)[i]}; };
    const bool quick =
        tenon::detail::validator::is_ordinary_layout({t}, s.type.itemsize(), quickly.storage, quickly, axis);
    EXPECT_TRUE(!quick || quickly.has_axes_of(s));
    std::copy(s.shape.begin(), s.shape.end(), wholly.storage);
    std::copy(s.strides->begin(), s.strides->end(), wholly.storage + n);
    const auto whole = tenon::detail::validator::check_stored({t}, wholly.storage, wholly);
    // The one after the other: all axes are there, whichever has the last word.
    const auto both = tenon::detail::validator::check_axes({t}, checked.storage, checked, axis);
    EXPECT_EQ(static_cast<bool>(both), static_cast<bool>(whole));
    EXPECT_TRUE(checked.has_axes_of(s));
    return {quick, static_cast<bool>(whole), quick ? quickly.size() : -1, whole ? wholly.size() : -1};
}

ints row_major(const ints& shape) {
    ints strides(shape.size());
    tenon::fill_row_major(shape, strides.data());
    return strides;
}

TEST(Validate, ArraysOfEveryDayAreCheckedQuickly) {
    const ints shapes[] = {{},
                           {1LL << 40},
                           {1080, 1920, 3},
                           {2160, 3840, 4},
                           {32, 3, 224, 224},
                           {512, 2048, 7, 7},
                           {64, 16, 3, 224, 224},
                           {8, 4, 3, 16, 224, 224},
                           ints(8, 9),
                           ints(64, 1)};
    for (const ints& shape : shapes) {
        ints strides = row_major(shape);
        EXPECT_TRUE(both_checks({.data = address(1LL << 46), .shape = shape, .strides = strides}).quick)
            << testing::PrintToString(shape);
        for (std::int64_t& stride : strides) stride = -stride;  // all axes the other way
        EXPECT_TRUE(both_checks({.data = address(1LL << 46), .shape = shape, .strides = strides}).quick)
            << testing::PrintToString(shape) << " backwards";
        std::reverse(strides.begin(), strides.end());
        EXPECT_EQ(both_checks({.data = address(1LL << 46), .shape = shape, .strides = strides}).quick_size,
                  *tenon::element_count(shape));
    }
    EXPECT_TRUE(both_checks({.data = memory, .shape = {1, 4}, .strides = ints{int64_lowest, 1}}).quick)
        << "an axis of one element may have any stride";
}

TEST(Validate, AnAxisThatChangesWhileItIsLookedAtIsCheckedAsItIsKept) {
    // Empty at the first look, so that there is a second; something else by then.
    const std::pair<tenon::detail::raw_axis, bool> second[] = {
        {{-3, 1}, false}, {{std::int64_t{1} << 62, 8}, false}, {{4, 1}, true}, {{0, 1}, true}};
    for (const auto& [axis, good] : second) {
        checked_tensor t;
        int looks = 0;
        const auto changing = [&](std::size_t) {
            return ++looks == 1 ? tenon::detail::raw_axis{0, 1} : axis;
        };
        spec s{.data = memory, .shape = {0}, .strides = ints{1}};
        const auto ok = tenon::detail::validator::check_axes({describe(s)}, t.storage, t, changing);
        EXPECT_EQ(static_cast<bool>(ok), good) << axis.extent;
        EXPECT_EQ(t.storage[0], axis.extent);
        EXPECT_TRUE(!ok || t.size() == axis.extent);
    }
}

TEST(Validate, TheQuickCheckAndTheWholeOneAgree) {
    // The quick one accepts nothing that the whole one refuses; and what it leaves to it is empty, malformed,
    // or near the limits: 2^58 elements or bytes of address, 2^52 elements between the ends of an axis.
    std::mt19937_64 rng(21);
    const auto draw = [&](std::int64_t from, std::int64_t to) {
        return std::uniform_int_distribution<std::int64_t>(from, to)(rng);
    };
    const auto edgy = [&](std::int64_t bits) {
        const std::int64_t v = (std::int64_t{1} << draw(0, bits)) + draw(-1, 1);
        return draw(0, 5) == 0 ? draw(0, 3) : v;
    };
    static constexpr dtype types[] = {{tc::uint, 8}, {tc::float_, 32}, {tc::float_, 64}, {tc::complex, 128}};
    constexpr wide limit = wide{1} << 58U;
    int taken = 0;
    int left = 0;
    for (int round = 0; round < 200000; ++round) {
        const auto rank = static_cast<std::size_t>(draw(0, 9));
        spec s{.data = address(static_cast<std::uintptr_t>(edgy(61))),
               .shape = ints(rank),
               .strides = ints(rank),
               .type = types[round % 4],
               .byte_offset = draw(0, 2) == 0 ? static_cast<std::uint64_t>(edgy(61)) : 0};
        const std::int64_t bits = std::max<std::int64_t>(
            1, draw(1, 62) / static_cast<std::int64_t>(std::max<std::size_t>(rank, 1)));
        for (std::size_t i = 0; i < rank; ++i) {
            s.shape[i] = edgy(bits);
            (*s.strides)[i] = edgy(draw(0, 1) == 0 ? bits : 40) * (draw(0, 2) == 0 ? -1 : 1);
            if (draw(0, 60) == 0) (*s.strides)[i] = draw(0, 1) == 0 ? int64_lowest : int64_highest;
            if (draw(0, 100) == 0) s.shape[i] = draw(0, 1) == 0 ? int64_lowest : -draw(0, 3);
        }
        const verdicts said = both_checks(s);
        const auto shown = [&] {
            return testing::PrintToString(s.shape) + testing::PrintToString(*s.strides) + " at " +
                   testing::PrintToString(s.data) + " + " + std::to_string(s.byte_offset);
        };
        if (said.quick) {
            ASSERT_TRUE(said.whole) << shown();
            ASSERT_EQ(said.quick_size, said.whole_size) << shown();
        }
        wide size = 1;
        wide low = 0;
        bool ordinary = true;
        for (std::size_t i = 0; i < rank && ordinary; ++i) {
            const wide reach = (static_cast<wide>(s.shape[i]) - 1) * (*s.strides)[i];
            low += reach < 0 ? reach : 0;
            size *= s.shape[i];
            // (One step further backwards than forwards: what is looked at are the bits.)
            ordinary = s.shape[i] > 0 && size < limit && reach < limit >> 6U && reach >= -(limit >> 6U);
        }
        const auto base = static_cast<wide>(reinterpret_cast<std::uintptr_t>(s.data));
        ordinary = ordinary && size < limit && base != 0 && base < limit &&
                   static_cast<wide>(s.byte_offset) < limit && -low * s.type.itemsize() <= base;
        ASSERT_EQ(said.quick, ordinary) << shown();
        ++(said.quick ? taken : left);
    }
    EXPECT_GT(taken, 20000);
    EXPECT_GT(left, 20000);
}

// --- odd, but right ---------------------------------------------------------------------------------

TEST(Validate, ScalarWithNullArrays) {
    spec s{.data = memory};
    auto t = describe(s);
    t.shape = nullptr;
    t.strides = nullptr;
    tenon::keep_alive nobody;
    const auto made_of = tenon::tensor::adopt(t, 0, {1, 3}, nobody);
    ASSERT_TRUE(made_of);
    EXPECT_EQ(made_of->ndim(), 0);
    EXPECT_EQ(made_of->size(), 1);
    EXPECT_EQ(made_of->nbytes(), 4);
    EXPECT_TRUE(made_of->shape().empty() && made_of->strides().empty());
    EXPECT_TRUE(made_of->is_c_contiguous() && made_of->is_f_contiguous());
}

TEST(Validate, ScalarIgnoresWhatItsArrayPointersHold) {
    spec s{.data = memory};
    auto t = describe(s);
    t.shape = static_cast<std::int64_t*>(address(1));
    t.strides = static_cast<std::int64_t*>(address(3));
    tenon::keep_alive nobody;
    EXPECT_TRUE(tenon::tensor::adopt(t, 0, {1, 3}, nobody));
}

TEST(Validate, NullStridesAreRowMajor) {
    const auto t = made({.data = memory, .shape = {2, 1, 3}});
    EXPECT_EQ(to_ints(t.strides()), (ints{3, 3, 1}));
    EXPECT_TRUE(t.is_c_contiguous());
}

TEST(Validate, EmptyTensorsMayHaveAnyOtherExtentsStridesAndData) {
    for (void* data :
         {static_cast<void*>(nullptr), static_cast<void*>(memory), address(3), address(UINTPTR_MAX)})
        for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{64}, UINT64_MAX})
            for (const ints& shape : {ints{0}, ints{0, int64_highest, int64_highest},
                                      ints{int64_highest, int64_highest, 0}, ints{3, 0, 5}}) {
                for (const auto& strides : {maybe_strides{}, maybe_strides{ints(shape.size(), 0)},
                                            maybe_strides{ints(shape.size(), int64_lowest)},
                                            maybe_strides{ints(shape.size(), int64_highest)}}) {
                    const auto t =
                        import({.data = data, .shape = shape, .strides = strides, .byte_offset = offset});
                    ASSERT_TRUE(t) << t.error();
                    EXPECT_EQ(t->size(), 0);
                    EXPECT_TRUE(t->empty());
                    EXPECT_EQ(t->nbytes(), 0);
                    EXPECT_TRUE(t->is_c_contiguous()) << testing::PrintToString(shape);
                    EXPECT_TRUE(t->is_f_contiguous()) << testing::PrintToString(shape);
                    EXPECT_EQ(to_ints(t->shape()), shape);
                    if (strides) {
                        EXPECT_EQ(to_ints(t->strides()), *strides);
                    }
                }
            }
}

TEST(Validate, StrideOfASingleElementMayBeAnything) {
    for (const std::int64_t odd : {int64_lowest, int64_highest, std::int64_t{-1}, std::int64_t{0}}) {
        const auto t = import({.data = memory, .shape = {1, 4, 1}, .strides = ints{odd, 1, odd}});
        ASSERT_TRUE(t) << t.error();
        EXPECT_EQ(to_ints(t->strides()), (ints{odd, 1, odd})) << "passed through unchanged";
        EXPECT_TRUE(t->is_c_contiguous());
    }
}

TEST(Validate, NegativeAndZeroStrides) {
    const auto flipped = made({.data = memory + 3, .shape = {4}, .strides = ints{-1}});
    EXPECT_EQ(flipped.stride(0), -1);
    EXPECT_FALSE(flipped.is_c_contiguous());
    EXPECT_TRUE(import({.data = memory, .shape = {1000, 4}, .strides = ints{0, 1}}));
}

TEST(Validate, ByteOffsetIsApplied) {
    const auto t = made({.data = memory, .shape = {2}, .byte_offset = 8});
    EXPECT_EQ(t.data(), memory + 2);
    EXPECT_EQ(t.base(), memory);
    EXPECT_EQ(t.byte_offset(), 8U);
}

TEST(Validate, HandlesAreNotAddresses) {
    // The same numbers wrap as an address and are fine as a handle.
    spec s{.data = address(UINTPTR_MAX - 7), .shape = {4}, .byte_offset = 64};
    EXPECT_FALSE(import(s));
    for (const auto kind : {dc::opencl, dc::vulkan, dc::metal, dc::webgpu}) {
        s.where = {kind, 0};
        const auto t = import(s);
        ASSERT_TRUE(t) << t.error();
        EXPECT_EQ(t->base(), s.data);
        EXPECT_EQ(t->byte_offset(), 64U);
    }
}

TEST(Validate, AddressesMayGoUpToTheLastByte) {
    // [max - 8, max) holds two floats and ends one byte short of the end.
    EXPECT_TRUE(import({.data = address(UINTPTR_MAX - 8), .shape = {2}}));
    EXPECT_FALSE(import({.data = address(UINTPTR_MAX - 6), .shape = {2}}));
    // Two elements from address 4 down to address 0 touch the first byte there is.
    EXPECT_TRUE(import({.data = address(4), .shape = {2}, .strides = ints{-1}}));
    EXPECT_FALSE(import({.data = address(3), .shape = {2}, .strides = ints{-1}}));
}

TEST(Validate, LargestSizesThatFit) {
    const auto bytes = import({.data = address(1), .shape = {int64_highest}, .type = {tc::uint, 8}});
    ASSERT_TRUE(bytes) << bytes.error();
    EXPECT_EQ(bytes->nbytes(), int64_highest);
    const auto packed = import(
        {.data = address(1), .shape = {int64_highest}, .strides = ints{0}, .type = {tc::float4_e2m1fn, 4}});
    ASSERT_TRUE(packed) << packed.error();
    EXPECT_EQ(packed->nbytes(), int64_highest / 2 + 1);
    EXPECT_TRUE(import({.data = address(1), .shape = {int64_highest / 4}}));
    EXPECT_FALSE(import({.data = address(1), .shape = {int64_highest / 4 + 1}}));
}

TEST(Validate, PaddedSubByteElementsAreCountedInWholeBytes) {
    spec s{.data = memory,
           .shape = {int64_highest / 2 + 1},
           .strides = ints{0},
           .type = {tc::float4_e2m1fn, 4, 3}};
    EXPECT_TRUE(import(s));               // 12 bits each
    s.flags = abi::flag::subbyte_padded;  // 16 bits each
    expect_error(import(s), errc::malformed, "shape");
}

TEST(Validate, SubByteSizes) {
    spec s{.data = memory, .shape = {3}, .type = {tc::float4_e2m1fn, 4}};
    EXPECT_EQ(made(s).nbytes(), 2);
    EXPECT_EQ(made(s).itemsize(), 1);
    s.flags = abi::flag::subbyte_padded;
    EXPECT_EQ(made(s).nbytes(), 3);
    s.type = {tc::float4_e2m1fn, 4, 2};
    s.flags = 0;
    EXPECT_EQ(made(s).nbytes(), 3);
}

TEST(Validate, EveryKnownTypeAndDevice) {
    for (const auto& e : tenon::detail::dtype_table) {
        const auto t = import({.data = memory, .shape = {2}, .type = e.type});
        ASSERT_TRUE(t) << e.name << ": " << t.error();
        EXPECT_EQ(t->dtype(), e.type);
    }
    for (const auto& e : tenon::detail::device_table) {
        const auto t = import({.data = memory, .shape = {2}, .where = {e.type, 3}});
        ASSERT_TRUE(t) << e.name << ": " << t.error();
        EXPECT_EQ(t->device(), device(e.type, 3));
    }
}

TEST(Validate, KnownFlags) {
    for (std::uint64_t flags = 0; flags < 8; ++flags) {
        const auto t = made({.data = memory, .shape = {2}, .flags = flags});
        EXPECT_EQ(t.flags(), flags);
        EXPECT_EQ(t.is_read_only(), (flags & 1U) != 0);
        EXPECT_EQ(t.is_copied(), (flags & 2U) != 0);
        EXPECT_EQ(t.is_subbyte_padded(), (flags & 4U) != 0);
    }
}

TEST(Validate, MisalignedDataIsATensorAllTheSame) {
    const auto t = made({.data = reinterpret_cast<std::byte*>(memory) + 1, .shape = {2}});
    EXPECT_TRUE(t.is_aligned_to(1));
    EXPECT_FALSE(t.is_aligned_to(2));
    EXPECT_TRUE(made({.data = memory, .shape = {2}}).is_aligned_to(64));
    EXPECT_TRUE(made({.data = memory, .shape = {2}, .byte_offset = 8}).is_aligned_to(8));
    EXPECT_FALSE(made({.data = memory, .shape = {2}, .byte_offset = 8}).is_aligned_to(16));
}

TEST(Validate, MisalignedArraysAreReadAllTheSame) {
    alignas(8) std::byte raw[40];
    const std::int64_t shape[] = {2, 3};
    const std::int64_t strides[] = {3, 1};
    std::memcpy(raw + 1, shape, sizeof shape);
    std::memcpy(raw + 18, strides, sizeof strides);
    spec s{.data = memory};
    auto t = describe(s);
    t.ndim = 2;
    t.shape = static_cast<std::int64_t*>(static_cast<void*>(raw + 1));
    t.strides = static_cast<std::int64_t*>(static_cast<void*>(raw + 18));
    tenon::keep_alive nobody;
    const auto got = tenon::tensor::adopt(t, 0, {1, 3}, nobody);
    ASSERT_TRUE(got);
    EXPECT_EQ(to_ints(got->shape()), (ints{2, 3}));
    EXPECT_EQ(to_ints(got->strides()), (ints{3, 1}));
}

TEST(Validate, EachAxisIsAskedForOnce) {
    // A producer that answers differently the second time gains nothing: there is no second time.
    struct borrowed : tenon::tensor_ref {
        std::int64_t storage[6];
    } out;
    const abi::dl_tensor t{memory, {dc::cpu, 0}, 3, {tc::float_, 32, 1}, nullptr, nullptr, 0};
    ints asked;
    const auto ok = tenon::detail::validator::check_axes({t}, out.storage, out, [&](std::size_t i) {
        asked.push_back(static_cast<std::int64_t>(i));
        const bool first = asked.size() <= 3;
        return tenon::detail::raw_axis{first ? 2 : -1, first ? std::int64_t{4} >> i : int64_lowest};
    });
    ASSERT_TRUE(ok) << ok.error();
    EXPECT_EQ(asked, (ints{0, 1, 2}));
    EXPECT_EQ(to_ints(out.shape()), (ints{2, 2, 2}));
    EXPECT_EQ(to_ints(out.strides()), (ints{4, 2, 1}));
    EXPECT_EQ(out.size(), 8);
    EXPECT_TRUE(out.is_c_contiguous());
}

TEST(Validate, ArraysAreReadExactlyToTheirEnd) {
    const page_end shape_page;
    const page_end strides_page;
    for (const std::size_t rank : {std::size_t{1}, std::size_t{5}, std::size_t{6}, std::size_t{64}}) {
        auto* shape = static_cast<std::int64_t*>(shape_page.last(rank * 8));
        auto* strides = static_cast<std::int64_t*>(strides_page.last(rank * 8));
        std::fill_n(shape, rank, 1);
        std::fill_n(strides, rank, 7);
        const abi::dl_tensor t{
            memory, {dc::cpu, 0}, static_cast<std::int32_t>(rank), {tc::float_, 32, 1}, shape, strides, 0};
        tenon::keep_alive nobody;
        EXPECT_TRUE(tenon::tensor::adopt(t, 0, {1, 3}, nobody)) << rank;
    }
}

}  // namespace
