// src/value/number.hpp: what one element means: its bits, of any type of the table, as a number.
#pragma once

#include <tenon/abi/dlpack.hpp>
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

/// A floating-point format: sign, exponent and mantissa from the high end.
struct float_format {
    /// What all ones in the exponent are: infinity or NaN (ieee); numbers, but NaN where the mantissa is all
    /// ones, too (fn); numbers, and minus zero is NaN (fnuz); numbers (finite).
    enum class specials : std::uint8_t { ieee, fn, fnuz, finite };
    int exponent;  ///< bits
    int mantissa;  ///< bits
    int bias;
    specials special;
};

[[nodiscard]] constexpr std::optional<float_format> format_of(dtype type) noexcept {
    using enum float_format::specials;
    namespace code = abi::type_code;
    const auto if_wide = [&](int bits, float_format f) {
        return type.bits == bits ? std::optional(f) : std::nullopt;
    };
    switch (type.code) {
        case code::float_:
            return if_wide(16, {5, 10, 15, ieee});
        case code::bfloat:
            return if_wide(16, {8, 7, 127, ieee});
        case code::float8_e3m4:
            return if_wide(8, {3, 4, 3, ieee});
        case code::float8_e4m3:
            return if_wide(8, {4, 3, 7, ieee});
        case code::float8_e4m3b11fnuz:
            return if_wide(8, {4, 3, 11, fnuz});
        case code::float8_e4m3fn:
            return if_wide(8, {4, 3, 7, fn});
        case code::float8_e4m3fnuz:
            return if_wide(8, {4, 3, 8, fnuz});
        case code::float8_e5m2:
            return if_wide(8, {5, 2, 15, ieee});
        case code::float8_e5m2fnuz:
            return if_wide(8, {5, 2, 16, fnuz});
        case code::float6_e2m3fn:
            return if_wide(6, {2, 3, 1, finite});
        case code::float6_e3m2fn:
            return if_wide(6, {3, 2, 3, finite});
        case code::float4_e2m1fn:
            return if_wide(4, {2, 1, 1, finite});
        default:
            return std::nullopt;
    }
}

[[nodiscard]] inline double decode(std::uint64_t bits, const float_format& f) noexcept {
    using enum float_format::specials;
    const auto low = [](std::uint64_t value, int count) {
        return value & ((std::uint64_t{1} << static_cast<unsigned>(count)) - 1);
    };
    const std::uint64_t fraction = low(bits, f.mantissa);
    const std::uint64_t exponent = low(bits >> static_cast<unsigned>(f.mantissa), f.exponent);
    const bool negative = low(bits >> static_cast<unsigned>(f.mantissa + f.exponent), 1) != 0;
    const bool highest = exponent == low(~std::uint64_t{0}, f.exponent);
    double magnitude = 0;
    if ((f.special == fnuz && negative && exponent == 0 && fraction == 0) ||
        (f.special == fn && highest && fraction == low(~std::uint64_t{0}, f.mantissa)) ||
        (f.special == ieee && highest && fraction != 0)) {
        return std::numeric_limits<double>::quiet_NaN();
    } else if (f.special == ieee && highest) {
        magnitude = std::numeric_limits<double>::infinity();
    } else {  // below the lowest exponent there is no hidden one
        const std::uint64_t hidden =
            exponent != 0 ? std::uint64_t{1} << static_cast<unsigned>(f.mantissa) : 0;
        magnitude = std::ldexp(static_cast<double>(hidden + fraction),
                               (exponent != 0 ? static_cast<int>(exponent) : 1) - f.bias - f.mantissa);
    }
    return negative ? -magnitude : magnitude;
}

template <class T>
[[nodiscard]] T read_as(const void* at) noexcept {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

/// A real number of so many bits; nothing for a type that has none, or whose meaning is not known.
[[nodiscard]] inline std::optional<double> read_real(dtype type, const void* at) noexcept {
    if (type == dtype_of<float>) return read_as<float>(at);
    if (type == dtype_of<double>) return read_as<double>(at);
    if (type.code == abi::type_code::float8_e8m0fnu && type.bits == 8) {  // an exponent and nothing else
        const auto exponent = read_as<std::uint8_t>(at);
        return exponent == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, exponent - 127);
    }
    const auto format = format_of(type);
    if (!format) return std::nullopt;
    return decode(type.bits == 16 ? read_as<std::uint16_t>(at) : read_as<std::uint8_t>(at), *format);
}

}  // namespace detail

/// The element at this address, which need not be aligned; one of less than 8 bits is in the low ones.
/// Nothing for handles, vectors, and types that are not in the table.
[[nodiscard]] inline std::optional<number> read_number(dtype type, const void* at) noexcept {
    using detail::read_as;
    using kind = number::kind;
    if (type.lanes != 1) return std::nullopt;
    if (type.is_bool())
        return type.bits == 8 ? std::optional(number{kind::boolean, read_as<std::uint8_t>(at) != 0 ? 1 : 0})
                              : std::nullopt;
    if (type.is_integer()) {
        std::uint64_t bits = 0;
        switch (type.bits) {
            case 64:
                bits = read_as<std::uint64_t>(at);
                break;
            case 32:
                bits = read_as<std::uint32_t>(at);
                break;
            case 16:
                bits = read_as<std::uint16_t>(at);
                break;
            case 8:
            case 4:
            case 2:
                bits = read_as<std::uint8_t>(at);
                break;
            default:
                return std::nullopt;
        }
        const unsigned unused = 64U - type.bits;
        bits <<= unused;
        if (type.is_unsigned_integer())
            return number{kind::natural, static_cast<std::int64_t>(bits >> unused)};
        return number{kind::integer, static_cast<std::int64_t>(bits) >> unused};
    }
    if (type.is_complex()) {
        const bool brief = type.code == abi::type_code::bcomplex;
        const dtype part{brief ? abi::type_code::bfloat : abi::type_code::float_,
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
