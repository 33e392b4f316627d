// tenon/value/dtype_names.hpp: the one table of element types, and how every neighbour spells them.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <tenon/value/dtype.hpp>

namespace tenon {

/// An empty field means that the type has no spelling there.
struct dtype_entry {
    dtype type;
    std::string_view name;           ///< as NumPy, ml_dtypes and PyTorch name it
    std::string_view typestr;        ///< NumPy array interface, without the byte order
    std::string_view buffer_format;  ///< PEP 3118 / struct module, native order
    std::string_view arrow_format;   ///< Arrow C data interface (its booleans are bit-packed, so not ours)
};

namespace detail {
TENON_PRIVATE inline constexpr std::array dtype_table{
    dtype_entry{{tc::int_, 8}, "int8", "i1", "b", "c"},
    dtype_entry{{tc::int_, 16}, "int16", "i2", "h", "s"},
    dtype_entry{{tc::int_, 32}, "int32", "i4", "i", "i"},
    dtype_entry{{tc::int_, 64}, "int64", "i8", "q", "l"},
    dtype_entry{{tc::uint, 8}, "uint8", "u1", "B", "C"},
    dtype_entry{{tc::uint, 16}, "uint16", "u2", "H", "S"},
    dtype_entry{{tc::uint, 32}, "uint32", "u4", "I", "I"},
    dtype_entry{{tc::uint, 64}, "uint64", "u8", "Q", "L"},
    dtype_entry{{tc::float_, 16}, "float16", "f2", "e", "e"},
    dtype_entry{{tc::float_, 32}, "float32", "f4", "f", "f"},
    dtype_entry{{tc::float_, 64}, "float64", "f8", "d", "g"},
    dtype_entry{{tc::bool_, 8}, "bool", "b1", "?", ""},
    dtype_entry{{tc::complex, 32}, "complex32", "", "", ""},
    dtype_entry{{tc::complex, 64}, "complex64", "c8", "Zf", ""},
    dtype_entry{{tc::complex, 128}, "complex128", "c16", "Zd", ""},
    dtype_entry{{tc::bfloat, 16}, "bfloat16", "", "", ""},
    dtype_entry{{tc::bcomplex, 32}, "bcomplex32", "", "", ""},
    dtype_entry{{tc::opaque_handle, 64}, "opaque_handle64", "", "", ""},
    dtype_entry{{tc::float8_e3m4, 8}, "float8_e3m4", "", "", ""},
    dtype_entry{{tc::float8_e4m3, 8}, "float8_e4m3", "", "", ""},
    dtype_entry{{tc::float8_e4m3b11fnuz, 8}, "float8_e4m3b11fnuz", "", "", ""},
    dtype_entry{{tc::float8_e4m3fn, 8}, "float8_e4m3fn", "", "", ""},
    dtype_entry{{tc::float8_e4m3fnuz, 8}, "float8_e4m3fnuz", "", "", ""},
    dtype_entry{{tc::float8_e5m2, 8}, "float8_e5m2", "", "", ""},
    dtype_entry{{tc::float8_e5m2fnuz, 8}, "float8_e5m2fnuz", "", "", ""},
    dtype_entry{{tc::float8_e8m0fnu, 8}, "float8_e8m0fnu", "", "", ""},
    dtype_entry{{tc::float6_e2m3fn, 6}, "float6_e2m3fn", "", "", ""},
    dtype_entry{{tc::float6_e3m2fn, 6}, "float6_e3m2fn", "", "", ""},
    dtype_entry{{tc::float4_e2m1fn, 4}, "float4_e2m1fn", "", "", ""},
    dtype_entry{{tc::float4_e2m1fn, 4, 2}, "float4_e2m1fn_x2", "", "", ""},  // PyTorch: a byte of two
    dtype_entry{{tc::int_, 4}, "int4", "", "", ""},
    dtype_entry{{tc::int_, 2}, "int2", "", "", ""},
    dtype_entry{{tc::uint, 4}, "uint4", "", "", ""},
    dtype_entry{{tc::uint, 2}, "uint2", "", "", ""},
};

// The buffer protocol and the array interfaces count steps in bytes, and rely on this to count elements.
static_assert([] {
    for (const dtype_entry& e : dtype_table)
        if (!(e.typestr.empty() && e.buffer_format.empty()) && !std::has_single_bit(e.type.itemsize()))
            return false;
    return true;
}());

inline constexpr bool little_endian = std::endian::native == std::endian::little;

}  // namespace detail

constexpr const dtype_entry* find_dtype(dtype t) noexcept {
    for (const dtype_entry& e : detail::dtype_table)
        if (e.type == t) return &e;
    return nullptr;
}

namespace detail {
/// For each type code, the widths up to 64 bits (bit `bits - 1`) the table has with one lane.
TENON_PRIVATE inline constexpr auto known_widths = [] {
    std::array<std::uint64_t, tc::bcomplex + 1> widths{};
    for (const dtype_entry& e : dtype_table)
        if (e.type.lanes == 1 && e.type.bits <= 64)
            widths[e.type.code] |= std::uint64_t{1} << (e.type.bits - 1);
    return widths;
}();
}  // namespace detail

/// Known means: it is in the table, so its size and meaning are certain.
TENON_HOT [[nodiscard]] constexpr bool is_known(dtype t) noexcept {
    if (t.lanes == 1 && t.code < detail::known_widths.size() && t.bits - 1U < 64U)
        return ((detail::known_widths[t.code] >> (t.bits - 1U)) & 1U) != 0;
    return find_dtype(t) != nullptr;
}

[[nodiscard]] constexpr std::optional<dtype> dtype_from_name(std::string_view name) noexcept {
    for (const dtype_entry& e : detail::dtype_table)
        if (e.name == name) return e.type;
    return std::nullopt;
}

/// "float32", or "dtype(code=42, bits=8, lanes=1)" for what has no name.
[[nodiscard]] TENON_API std::string name(dtype t);

}  // namespace tenon
