// src/value/number.hpp: what one element means: its bits, of any type of the table, as a number.
#pragma once

#include <tenon/value/dtype.hpp>
#include "../standard.hpp"

namespace tenon {

/// The value of an element.
struct number {
    enum class kind : std::uint8_t { boolean, integer, natural, real, complex };
    kind is = kind::integer;
    std::int64_t integer = 0;  ///< of a boolean 0 or 1, of a natural the same bits
    double real = 0;
    double imaginary = 0;
};

namespace detail {

/// A floating-point format of less than 32 bits: a sign, an exponent and a mantissa from the high end.
struct float_format {
    /// What all ones in the exponent are: infinity or NaN (ieee); numbers, but NaN where the mantissa is all
    /// ones, too (fn); numbers, and minus zero is NaN (fnuz); numbers (finite).
    enum specials : std::uint8_t { ieee, fn, fnuz, finite };
    std::uint8_t code;
    int exponent;  ///< bits
    int mantissa;  ///< bits
    int bias;
    specials special;
};

TENON_PRIVATE inline constexpr float_format float_formats[] = {
    {tc::float_, 5, 10, 15, float_format::ieee},
    {tc::bfloat, 8, 7, 127, float_format::ieee},
    {tc::float8_e3m4, 3, 4, 3, float_format::ieee},
    {tc::float8_e4m3, 4, 3, 7, float_format::ieee},
    {tc::float8_e4m3b11fnuz, 4, 3, 11, float_format::fnuz},
    {tc::float8_e4m3fn, 4, 3, 7, float_format::fn},
    {tc::float8_e4m3fnuz, 4, 3, 8, float_format::fnuz},
    {tc::float8_e5m2, 5, 2, 15, float_format::ieee},
    {tc::float8_e5m2fnuz, 5, 2, 16, float_format::fnuz},
    {tc::float6_e2m3fn, 2, 3, 1, float_format::finite},
    {tc::float6_e3m2fn, 3, 2, 3, float_format::finite},
    {tc::float4_e2m1fn, 2, 1, 1, float_format::finite},
};

[[nodiscard]] inline double decode(std::uint64_t bits, const float_format& f) noexcept {
    const auto low = [](std::uint64_t value, int count) {
        return value & ((std::uint64_t{1} << static_cast<unsigned>(count)) - 1);
    };
    const std::uint64_t fraction = low(bits, f.mantissa);
    const std::uint64_t exponent = low(bits >> static_cast<unsigned>(f.mantissa), f.exponent);
    const bool negative = low(bits >> static_cast<unsigned>(f.mantissa + f.exponent), 1) != 0;
    const bool highest = exponent == low(~std::uint64_t{0}, f.exponent);
    if ((f.special == float_format::fnuz && negative && exponent == 0 && fraction == 0) ||
        (f.special == float_format::fn && highest && fraction == low(~std::uint64_t{0}, f.mantissa)) ||
        (f.special == float_format::ieee && highest && fraction != 0))
        return std::numeric_limits<double>::quiet_NaN();
    // Below the lowest exponent there is no hidden one.
    const std::uint64_t hidden = exponent != 0 ? std::uint64_t{1} << static_cast<unsigned>(f.mantissa) : 0;
    const int power = (exponent != 0 ? static_cast<int>(exponent) : 1) - f.bias - f.mantissa;
    const double magnitude = f.special == float_format::ieee && highest
                                 ? std::numeric_limits<double>::infinity()
                                 : std::ldexp(static_cast<double>(hidden + fraction), power);
    return negative ? -magnitude : magnitude;
}

/// The bits of an element that has so many: 64, 32, 16, or 8 and less, with what is above them in the byte.
[[nodiscard]] inline std::uint64_t read_bits(std::uint32_t count, const void* at) noexcept {
    const auto read = [at]<class Bits>(Bits bits) -> std::uint64_t {
        std::memcpy(&bits, at, sizeof bits);
        return bits;
    };
    if (count == 64) return read(std::uint64_t{});
    if (count == 32) return read(std::uint32_t{});
    return count == 16 ? read(std::uint16_t{}) : read(std::uint8_t{});
}

/// A real number of so many bits; nothing for a type that has none, or whose meaning is not known.
[[nodiscard]] inline std::optional<double> read_real(dtype type, const void* at) noexcept {
    const std::uint64_t bits = read_bits(type.bits, at);
    if (type == dtype_of<float>) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (type == dtype_of<double>) return std::bit_cast<double>(bits);
    if (type.code == tc::float8_e8m0fnu && type.bits == 8)  // an exponent and nothing else
        return bits == 255 ? std::numeric_limits<double>::quiet_NaN()
                           : std::ldexp(1.0, static_cast<int>(bits) - 127);
    for (const float_format& f : float_formats)
        if (f.code == type.code && 1 + f.exponent + f.mantissa == type.bits) return decode(bits, f);
    return std::nullopt;
}

}  // namespace detail

/// The element at this address, which need not be aligned; one of less than 8 bits is in the low ones.
/// Nothing for handles, vectors, and types that are not in the table.
[[nodiscard]] inline std::optional<number> read_number(dtype type, const void* at) noexcept {
    using kind = number::kind;
    if (type.lanes != 1) return std::nullopt;
    if (type.is_bool() && type.bits == 8) return number{kind::boolean, detail::read_bits(8, at) != 0 ? 1 : 0};
    if (type.is_integer()) {
        if (type.bits < 2 || type.bits > 64 || !std::has_single_bit(type.bits)) return std::nullopt;
        const unsigned unused = 64U - type.bits;
        const std::uint64_t bits = detail::read_bits(type.bits, at) << unused;
        if (type.is_unsigned_integer())
            return number{kind::natural, static_cast<std::int64_t>(bits >> unused)};
        return number{kind::integer, static_cast<std::int64_t>(bits) >> unused};
    }
    if (type.is_complex()) {
        const dtype part{
            type.code == abi::type_code::bcomplex ? abi::type_code::bfloat : abi::type_code::float_,
            static_cast<std::uint8_t>(type.bits / 2)};
        const auto real = detail::read_real(part, at);
        const auto imaginary = detail::read_real(part, static_cast<const char*>(at) + part.itemsize());
        if (!real || !imaginary) return std::nullopt;
        return number{kind::complex, 0, *real, *imaginary};
    }
    const auto real = detail::read_real(type, at);
    return real ? std::optional(number{kind::real, 0, *real}) : std::nullopt;
}

}  // namespace tenon
