// tenon/value/dtype.hpp: the element type of a tensor, and the C++ types that correspond to one.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>
#if defined(__STDCPP_FLOAT16_T__) || defined(__STDCPP_BFLOAT16_T__)
#include <stdfloat>
#endif

#include <tenon/detail/config.hpp>
#include <tenon/value/dtype_gpu.hpp>

namespace tenon {

/// An element type as DLPack spells it: kind, bits per lane, lanes per element. Open: codes this build has no
/// name for survive a round trip and print as numbers.
struct dtype {
    std::uint8_t code = abi::type_code::float_;
    std::uint8_t bits = 32;
    std::uint16_t lanes = 1;

    constexpr dtype() noexcept = default;
    TENON_HD constexpr dtype(std::uint8_t c, std::uint8_t b, std::uint16_t l = 1) noexcept
        : code(c), bits(b), lanes(l) {}
    TENON_HD constexpr explicit dtype(abi::dl_dtype d) noexcept
        : code(d.code), bits(d.bits), lanes(d.lanes) {}
    [[nodiscard]] TENON_HD constexpr abi::dl_dtype to_abi() const noexcept { return {code, bits, lanes}; }

    // Defaulted: so device code may call it, too.
    TENON_HOT friend constexpr bool operator==(dtype, dtype) noexcept = default;

    [[nodiscard]] TENON_HD constexpr std::uint32_t bits_per_element() const noexcept {
        return static_cast<std::uint32_t>(bits) * lanes;
    }
    /// Bytes one element takes when it stands alone (a 4-bit element takes one).
    [[nodiscard]] TENON_HD constexpr std::uint32_t itemsize() const noexcept {
        return (bits_per_element() + 7U) / 8U;
    }
    /// Elements do not fill whole bytes, so several may share one.
    [[nodiscard]] TENON_HD constexpr bool is_subbyte() const noexcept { return bits_per_element() % 8U != 0; }

    /// What the address of an element must be a multiple of: the size of the number in it, of which a complex
    /// element has two and a vector several.
    [[nodiscard]] TENON_HD constexpr std::uint32_t alignment() const noexcept {
        const std::uint32_t number = is_complex() ? bits / 16U : bits / 8U;
        return number != 0 && (number & (number - 1U)) == 0 ? number : 1U;
    }

    [[nodiscard]] TENON_HD constexpr bool is_signed_integer() const noexcept {
        return code == abi::type_code::int_;
    }
    [[nodiscard]] TENON_HD constexpr bool is_unsigned_integer() const noexcept {
        return code == abi::type_code::uint;
    }
    [[nodiscard]] TENON_HD constexpr bool is_integer() const noexcept {
        return is_signed_integer() || is_unsigned_integer();
    }
    /// Any real floating type: IEEE, bfloat16, fp8, fp6, fp4.
    [[nodiscard]] TENON_HD constexpr bool is_floating() const noexcept {
        return code == abi::type_code::float_ || code == abi::type_code::bfloat ||
               (code >= abi::type_code::float8_e3m4 && code <= abi::type_code::float4_e2m1fn);
    }
    [[nodiscard]] TENON_HD constexpr bool is_complex() const noexcept {
        return code == abi::type_code::complex || code == abi::type_code::bcomplex;
    }
    [[nodiscard]] TENON_HD constexpr bool is_bool() const noexcept { return code == abi::type_code::bool_; }
};

/// A truth value as array libraries store it: one byte, false only when zero. A C++ `bool` may hold nothing
/// but 0 and 1, so foreign memory is never read as one.
struct bool8 {
    std::uint8_t byte;
    constexpr bool8() noexcept = default;
    TENON_HD constexpr bool8(bool b) noexcept : byte(b ? 1 : 0) {}
    TENON_HD constexpr operator bool() const noexcept { return byte != 0; }
};

/// Which dtype a C++ type is; specialise it (a static constexpr member `value`) to add your own type.
template <class T>
struct dtype_traits {};

namespace detail {
template <std::uint8_t Code, std::uint8_t Bits, std::uint16_t Lanes>
struct dlpack_is {
    static constexpr dtype value{Code, Bits, Lanes};
};
}  // namespace detail

template <std::integral T>
struct dtype_traits<T>
    : detail::dlpack_is<std::is_signed_v<T> ? abi::type_code::int_ : abi::type_code::uint, sizeof(T) * 8> {};
template <>
struct dtype_traits<bool> : detail::dlpack_is<abi::type_code::bool_, 8> {};
template <>
struct dtype_traits<bool8> : dtype_traits<bool> {};
/// float, double, and those of <stdfloat>; the size of a long double is the platform's secret.
template <std::floating_point T>
    requires(sizeof(T) <= sizeof(double) && !std::same_as<T, long double>)
struct dtype_traits<T> : detail::dlpack_is<abi::type_code::float_, sizeof(T) * 8> {};
/// std::complex, and whatever is made like it (thrust's, CCCL's): a pair of numbers, real and imaginary.
template <template <class> class Complex, class Part>
    requires(std::same_as<Part, float> || std::same_as<Part, double>) && requires(Complex<Part> z) {
        { z.real() } -> std::convertible_to<Part>;
        { z.imag() } -> std::convertible_to<Part>;
        requires sizeof(z) == 2 * sizeof(Part);
    }
struct dtype_traits<Complex<Part>> : detail::dlpack_is<abi::type_code::complex, sizeof(Part) * 16> {};
#if defined(__STDCPP_BFLOAT16_T__)
template <>
struct dtype_traits<std::bfloat16_t> : detail::dlpack_is<abi::type_code::bfloat, 16> {};
#endif

/// Types of CUDA's and HIP's headers, where those were included first.
template <class T>
    requires requires { gpu_type(detail::tag<T>{}); }
struct dtype_traits<T> : decltype(gpu_type(detail::tag<T>{})){};

template <class T>
concept element = requires {
    { dtype_traits<std::remove_cv_t<T>>::value } -> std::convertible_to<dtype>;
};

template <element T>
inline constexpr dtype dtype_of = dtype_traits<std::remove_cv_t<T>>::value;

namespace detail {

/// Truth values, natural, whole, real, complex numbers: each kind has all the values of those before it. -1
/// for what is none of them.
[[nodiscard]] constexpr int kind_of_number(dtype t) noexcept {
    if (t.is_bool()) return 0;
    if (t.is_unsigned_integer()) return 1;
    if (t.is_signed_integer()) return 2;
    if (t.is_floating()) return 3;
    return t.is_complex() ? 4 : -1;
}

/// The bits of an IEEE number that takes every value of the type as it is; of integers of 64 bits, rounded.
[[nodiscard]] constexpr std::uint32_t ieee_bits_for(dtype t) noexcept {
    if (t.is_integer()) return t.bits > 32 ? 64U : 2U * t.bits;
    if (t.code == abi::type_code::complex) return t.bits / 2U;
    return t.code == abi::type_code::float_ ? t.bits : 32U;  // bfloat16 and the small ones
}

}  // namespace detail

/// Whether elements may be converted without losing a part of their values: a sign, a fraction, an imaginary
/// part, digits; what NumPy calls safe (64-bit integers become float64). With `narrowing` they may lose
/// digits and range, but neither sign, fraction nor imaginary part: what NumPy calls the same kind.
[[nodiscard]] constexpr bool can_convert(dtype from, dtype to, bool narrowing = false) noexcept {
    if (from == to) return true;
    const int kind = detail::kind_of_number(from), wanted = detail::kind_of_number(to);
    if (kind < 0 || wanted < kind || from.lanes != to.lanes) return false;
    if (narrowing || kind == 0) return true;
    if (wanted < 3) return kind == wanted ? to.bits >= from.bits : to.bits > from.bits;
    const bool is_ieee = to.code == abi::type_code::float_ || to.code == abi::type_code::complex;
    return is_ieee && detail::ieee_bits_for(to) >= detail::ieee_bits_for(from);
}

}  // namespace tenon
