// tests/cpp/dtype_names_test.cpp: the dtype table is consistent, and every spelling of an element type reads
// as it should.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include <tenon/value/dtype_names.hpp>

#include "../../src/value/formats.hpp"

namespace tc = tenon::abi::type_code;
using tenon::dtype;
using tenon::format_fault;
using tenon::detail::dtype_table;

namespace {

const std::string native = tenon::detail::little_endian ? "<" : ">";
const std::string swapped = tenon::detail::little_endian ? ">" : "<";

TEST(DtypeTable, NoTripleNameOrFormatTwice) {
    std::set<std::tuple<int, int, int>> triples;
    std::set<std::string_view> names, typestrs, formats, arrows;
    for (const auto& e : dtype_table) {
        EXPECT_TRUE(triples.emplace(e.type.code, e.type.bits, e.type.lanes).second) << e.name;
        EXPECT_FALSE(e.name.empty());
        EXPECT_TRUE(names.insert(e.name).second) << e.name;
        if (!e.typestr.empty()) {
            EXPECT_TRUE(typestrs.insert(e.typestr).second) << e.typestr;
        }
        if (!e.buffer_format.empty()) {
            EXPECT_TRUE(formats.insert(e.buffer_format).second) << e.buffer_format;
        }
        if (!e.arrow_format.empty()) {
            EXPECT_TRUE(arrows.insert(e.arrow_format).second) << e.arrow_format;
        }
    }
    EXPECT_GE(triples.size(), 28U);
}

TEST(DtypeTable, HasEveryTypeCodeOfDlpack) {
    std::set<int> codes;
    for (const auto& e : dtype_table) codes.insert(e.type.code);
    for (int code = 0; code <= tc::bcomplex; ++code) EXPECT_TRUE(codes.contains(code)) << code;
    EXPECT_EQ(codes.size(), 19U) << "a code that DLPack does not define: 18 of 1.3, and one after it";
}

TEST(DtypeTable, EverySpellingReadsBackAsItself) {
    for (const auto& e : dtype_table) {
        EXPECT_TRUE(tenon::is_known(e.type)) << e.name;
        ASSERT_EQ(tenon::find_dtype(e.type), &e);
        EXPECT_EQ(tenon::name(e.type), e.name);
        EXPECT_EQ(tenon::dtype_from_name(e.name), e.type);
        const std::size_t size = e.type.itemsize();
        if (!e.typestr.empty()) {
            // A typestr ends in its size in bytes.
            EXPECT_EQ(std::stoul(std::string(e.typestr.substr(1))), size);
            const auto back = tenon::dtype_from_typestr(native + std::string(e.typestr));
            EXPECT_EQ(back.fault, format_fault::none) << e.name;
            EXPECT_EQ(back.type, e.type) << e.name;
        }
        if (!e.buffer_format.empty()) {
            for (const std::string& mark : {std::string(), std::string("@"), std::string("="), native}) {
                const auto back = tenon::dtype_from_buffer_format(mark + std::string(e.buffer_format), size);
                EXPECT_EQ(back.fault, format_fault::none) << mark << e.buffer_format;
                EXPECT_EQ(back.type, e.type) << mark << e.buffer_format;
            }
        }
    }
}

TEST(DtypeTable, NamesAreExact) {
    EXPECT_EQ(tenon::dtype_from_name("float32"), dtype(tc::float_, 32));
    EXPECT_EQ(tenon::dtype_from_name("bfloat16"), dtype(tc::bfloat, 16));
    EXPECT_EQ(tenon::dtype_from_name("float4_e2m1fn_x2"), dtype(tc::float4_e2m1fn, 4, 2));
    for (const char* wrong : {"", "Float32", "float32 ", "float", "int128", "f4"})
        EXPECT_EQ(tenon::dtype_from_name(wrong), std::nullopt) << wrong;
}

TEST(DtypeNames, WhatHasNoNamePrintsAsNumbers) {
    EXPECT_EQ(tenon::name(dtype(42, 8)), "dtype(code=42, bits=8, lanes=1)");
    EXPECT_EQ(tenon::name(dtype(255, 255, 65535)), "dtype(code=255, bits=255, lanes=65535)");
    EXPECT_EQ(tenon::name(dtype(tc::float_, 32, 4)), "dtype(code=2, bits=32, lanes=4)");
    EXPECT_EQ(tenon::name(dtype(tc::float_, 8)), "dtype(code=2, bits=8, lanes=1)");
}

TEST(DtypeNames, ShortcutAgreesWithTheTableEverywhere) {
    for (unsigned code = 0; code < 256; ++code)
        for (unsigned bits = 0; bits < 256; ++bits)
            for (const unsigned lanes : {0U, 1U, 2U, 3U, 4U}) {
                const dtype t{static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits),
                              static_cast<std::uint16_t>(lanes)};
                bool listed = false;
                for (const auto& e : dtype_table) listed |= e.type == t;
                ASSERT_EQ(tenon::is_known(t), listed) << code << ' ' << bits << ' ' << lanes;
            }
}

struct typestr_row {
    std::string text;
    format_fault fault;
    dtype type = {};
};

TEST(Typestr, Table) {
    for (const typestr_row& r : {
             typestr_row{native + "f4", format_fault::none, {tc::float_, 32}},
             typestr_row{"=f4", format_fault::none, {tc::float_, 32}},
             typestr_row{native + "c16", format_fault::none, {tc::complex, 128}},
             typestr_row{"|b1", format_fault::none, {tc::bool_, 8}},
             typestr_row{"|u1", format_fault::none, {tc::uint, 8}},
             typestr_row{"|i1", format_fault::none, {tc::int_, 8}},
             // One byte has no order, whatever the mark says.
             typestr_row{native + "u1", format_fault::none, {tc::uint, 8}},
             typestr_row{swapped + "u1", format_fault::none, {tc::uint, 8}},
             typestr_row{swapped + "b1", format_fault::none, {tc::bool_, 8}},
             typestr_row{swapped + "f4", format_fault::byte_swapped},
             typestr_row{swapped + "i2", format_fault::byte_swapped},
             typestr_row{swapped + "c16", format_fault::byte_swapped},
             typestr_row{native + "f16", format_fault::unsupported},  // long double
             typestr_row{native + "c32", format_fault::unsupported},
             typestr_row{native + "f3", format_fault::unsupported},
             typestr_row{native + "f0", format_fault::unsupported},
             typestr_row{native + "f", format_fault::unsupported},
             typestr_row{native + "V2", format_fault::unsupported},
             typestr_row{"|V2", format_fault::unsupported},
             typestr_row{"|V16", format_fault::unsupported},
             typestr_row{native + "M8", format_fault::unsupported},
             typestr_row{native + "M8[ns]", format_fault::unsupported},
             typestr_row{native + "m8", format_fault::unsupported},
             typestr_row{"|O", format_fault::unsupported},
             typestr_row{"|O8", format_fault::unsupported},
             typestr_row{native + "U4", format_fault::unsupported},
             typestr_row{"|S3", format_fault::unsupported},
             typestr_row{"|t1", format_fault::unsupported},  // bit field
             typestr_row{"", format_fault::unsupported},
             typestr_row{"<", format_fault::unsupported},
             typestr_row{"f4", format_fault::unsupported},
             typestr_row{"c16", format_fault::unsupported},  // a mark is never optional
             typestr_row{"float32", format_fault::unsupported},
             typestr_row{native + "f4 ", format_fault::unsupported},
             typestr_row{" " + native + "f4", format_fault::unsupported},
             typestr_row{native + native + "f4", format_fault::unsupported},
             typestr_row{"!f4", format_fault::unsupported},
             typestr_row{"@f4", format_fault::unsupported},
             typestr_row{native + std::string("f4\0", 3), format_fault::unsupported},
         }) {
        const auto got = tenon::dtype_from_typestr(r.text);
        EXPECT_EQ(static_cast<int>(got.fault), static_cast<int>(r.fault)) << '"' << r.text << '"';
        if (r.fault == format_fault::none) {
            EXPECT_EQ(got.type, r.type) << '"' << r.text << '"';
        }
    }
    // "order does not matter" is no order for elements of several bytes: never taken as native silently.
    EXPECT_NE(tenon::dtype_from_typestr("|i4").fault, format_fault::none);
}

struct format_row {
    std::string text;
    std::size_t itemsize;
    format_fault fault;
    dtype type = {};
};

TEST(BufferFormat, Table) {
    constexpr auto none = format_fault::none;
    constexpr auto no = format_fault::unsupported;
    constexpr auto size = format_fault::size_mismatch;
    constexpr auto order = format_fault::byte_swapped;
    for (const format_row& r : {
             format_row{"b", 1, none, {tc::int_, 8}},
             format_row{"B", 1, none, {tc::uint, 8}},
             format_row{"c", 1, none, {tc::uint, 8}},
             format_row{"?", 1, none, {tc::bool_, 8}},
             format_row{"h", 2, none, {tc::int_, 16}},
             format_row{"H", 2, none, {tc::uint, 16}},
             format_row{"i", 4, none, {tc::int_, 32}},
             format_row{"I", 4, none, {tc::uint, 32}},
             format_row{"q", 8, none, {tc::int_, 64}},
             format_row{"Q", 8, none, {tc::uint, 64}},
             // Their size is the platform's or the mark's: the item size decides.
             format_row{"l", 8, none, {tc::int_, 64}},
             format_row{"l", 4, none, {tc::int_, 32}},
             format_row{"=l", 4, none, {tc::int_, 32}},
             format_row{native + "l", 4, none, {tc::int_, 32}},
             format_row{"L", 8, none, {tc::uint, 64}},
             format_row{"L", 4, none, {tc::uint, 32}},
             format_row{"=L", 4, none, {tc::uint, 32}},
             format_row{"n", 8, none, {tc::int_, 64}},
             format_row{"N", 8, none, {tc::uint, 64}},
             format_row{"e", 2, none, {tc::float_, 16}},
             format_row{"f", 4, none, {tc::float_, 32}},
             format_row{"d", 8, none, {tc::float_, 64}},
             format_row{"Zf", 8, none, {tc::complex, 64}},
             format_row{"Zd", 16, none, {tc::complex, 128}},
             // As the struct module of Python 3.14 and its ctypes have them.
             format_row{"F", 8, none, {tc::complex, 64}},
             format_row{"D", 16, none, {tc::complex, 128}},
             format_row{native + "F", 8, none, {tc::complex, 64}},
             format_row{native + "D", 16, none, {tc::complex, 128}},
             format_row{"@i", 4, none, {tc::int_, 32}},
             format_row{"@d", 8, none, {tc::float_, 64}},
             format_row{native + "i", 4, none, {tc::int_, 32}},
             format_row{native + "Zd", 16, none, {tc::complex, 128}},
             format_row{swapped + "B", 1, none, {tc::uint, 8}},
             format_row{"!?", 1, none, {tc::bool_, 8}},
             // Another byte order.
             format_row{swapped + "i", 4, order},
             format_row{swapped + "d", 8, order},
             format_row{swapped + "l", 4, order},
             format_row{swapped + "l", 8, order},
             format_row{swapped + "Zf", 8, order},
             format_row{swapped + "F", 8, order},
             format_row{swapped + "D", 16, order},
             // Letter and item size contradict each other.
             format_row{"i", 8, size},
             format_row{"i", 2, size},
             format_row{"i", 0, size},
             format_row{"q", 4, size},
             format_row{"f", 8, size},
             format_row{"d", 4, size},
             format_row{"B", 2, size},
             format_row{"c", 4, size},
             format_row{"?", 4, size},
             format_row{"l", 2, size},
             format_row{"L", 16, size},
             format_row{"l", 0, size},
             format_row{"n", 4, size},
             format_row{"N", 1, size},
             format_row{"Zf", 4, size},
             format_row{"Zd", 8, size},
             format_row{"Zd", ~std::size_t{0}, size},
             format_row{"F", 4, size},
             format_row{"F", 16, size},
             format_row{"D", 8, size},
             format_row{"D", 32, size},
             // Not one element type.
             format_row{"", 1, no},
             format_row{"", 0, no},
             format_row{"@", 4, no},
             format_row{"<", 4, no},
             format_row{"@@i", 4, no},
             format_row{"=<i", 4, no},
             format_row{"g", 16, no},
             format_row{"Zg", 32, no},
             format_row{"Z", 8, no},
             format_row{"fZ", 8, no},
             format_row{"G", 32, no},
             format_row{"ZF", 8, no},
             format_row{"FF", 16, no},
             format_row{"3f", 12, no},
             format_row{"1f", 4, no},
             format_row{"(2)f", 8, no},
             format_row{"ff", 8, no},
             format_row{" f", 4, no},
             format_row{"f ", 4, no},
             format_row{"T{i:a:f:b:}", 8, no},
             format_row{"T{}", 0, no},
             format_row{"T{", 4, no},
             format_row{"s", 1, no},
             format_row{"4s", 4, no},
             format_row{"p", 1, no},
             format_row{"P", 8, no},
             format_row{"x", 1, no},
             format_row{"O", 8, no},
             format_row{"u", 2, no},
             format_row{"w", 4, no},
             format_row{"t", 1, no},
             format_row{"&i", 8, no},
             format_row{"X{}", 8, no},
             format_row{"j", 4, no},
             format_row{std::string("f\0", 2), 4, no},
             format_row{std::string("\0", 1), 1, no},
             format_row{"\xff", 1, no},
         }) {
        const auto got = tenon::dtype_from_buffer_format(r.text, r.itemsize);
        EXPECT_EQ(static_cast<int>(got.fault), static_cast<int>(r.fault))
            << '"' << r.text << "\" " << r.itemsize;
        if (r.fault == none) {
            EXPECT_EQ(got.type, r.type) << '"' << r.text << "\" " << r.itemsize;
        }
    }
    if (tenon::detail::little_endian) {
        EXPECT_EQ(tenon::dtype_from_buffer_format("!d", 8).fault, order);
        EXPECT_EQ(tenon::dtype_from_buffer_format(">i", 4).fault, order);
    }
}

TEST(BufferFormat, WhateverIsAcceptedHasTheItemSize) {
    // Every string of one or two bytes, at every small item size: an accepted one never disagrees with its
    // size.
    int accepted = 0;
    for (unsigned a = 0; a < 256; ++a)
        for (unsigned b = 0; b < 257; ++b) {
            std::string text(1, static_cast<char>(a));
            if (b < 256) text += static_cast<char>(b);
            for (std::size_t size = 0; size <= 17; ++size) {
                const auto got = tenon::dtype_from_buffer_format(text, size);
                if (got.fault != format_fault::none) continue;
                ++accepted;
                ASSERT_EQ(got.type.itemsize(), size) << text;
                ASSERT_TRUE(tenon::is_known(got.type)) << text;
            }
        }
    EXPECT_GT(accepted, 60);
    EXPECT_LT(accepted, 120);
}

}  // namespace
