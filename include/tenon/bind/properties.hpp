// tenon/bind/properties.hpp: the constraints a parameter type can state, and the request they amount to.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <tenon/bind/parameter.hpp>
#include <tenon/tensor/view.hpp>

namespace tenon {

/// Row-major or column-major memory without gaps; without either, any strides will do.
struct c_contiguous {};
struct f_contiguous {};

/// Where the memory must be. Without one of these: wherever plain code can read it (CPU, pinned, managed).
struct cpu {};
struct cuda {};
struct rocm {};
struct any_device {};

/// What the address of the first element must be a multiple of.
template <std::size_t Bytes>
struct aligned {
    static_assert(Bytes != 0 && (Bytes & (Bytes - 1)) == 0 && Bytes <= 4096,
                  "tenon::aligned: the alignment must be a power of two up to 4096");
    static constexpr std::size_t bytes = Bytes;
};

/// What does not fit in element type or order may be converted, by the caller's own library, into a copy that
/// has the same values: see `can_convert`.
struct convert {};
/// Beside `convert`: into one of fewer digits, too (float64 to float32, int64 to int32).
struct narrowing {};

namespace bind {

/// Extents, each a number or `any`.
template <std::int64_t... Extents>
struct shape_pattern {
    static_assert(((Extents >= any) && ...), "tenon::shape: an extent is a number or tenon::any");
    static constexpr int rank = static_cast<int>(sizeof...(Extents));
    static constexpr std::array<std::int64_t, sizeof...(Extents)> extents{Extents...};
    friend constexpr bool operator==(shape_pattern, shape_pattern) noexcept = default;
};

template <class>
inline constexpr bool is_shape_pattern = false;
template <std::int64_t... Extents>
inline constexpr bool is_shape_pattern<const shape_pattern<Extents...>> = true;

template <class P>
inline constexpr std::size_t alignment_of = 0;
template <std::size_t Bytes>
inline constexpr std::size_t alignment_of<aligned<Bytes>> = aligned<Bytes>::bytes;

template <class P, class... Among>
inline constexpr bool is_one_of = (std::same_as<P, Among> || ...);
template <class P>
inline constexpr bool is_order = is_one_of<P, c_contiguous, f_contiguous>;
template <class P>
inline constexpr bool is_place = is_one_of<P, cpu, cuda, rocm, any_device>;
template <class P>
inline constexpr bool is_property =
    is_order<P> || is_place<P> || alignment_of<P> != 0 || is_one_of<P, convert, narrowing>;

/// What `array<T, Extents, Props...>` asks of a tensor.
template <class T, auto Extents, class... Props>
struct constraints {
    static_assert(
        std::is_void_v<T> || element<T>,
        "tenon::array: the element type is not known to DLPack; specialise tenon::dtype_traits for it");
    static_assert(!std::same_as<std::remove_cv_t<T>, bool>,
                  "tenon::array<bool>: a C++ bool may hold nothing but 0 and 1; take tenon::bool8");
    static_assert(
        std::is_void_v<T> || viewable<T> || std::same_as<std::remove_cv_t<T>, bool>,
        "tenon::array: the size of this type is not that of its elements in memory; take const void");
    static_assert(std::is_void_v<T> || !viewable<T> || addressable<T>,
                  "tenon::array: elements of less than a byte may share bytes; take const void and a view "
                  "of it, or a type of whole bytes (__nv_fp4x2_e2m1)");
    using extents_type = std::add_const_t<decltype(Extents)>;
    static_assert(std::integral<extents_type> || is_shape_pattern<extents_type>,
                  "tenon::array: the second argument is a rank or a tenon::shape<...>");
    static_assert((is_property<Props> && ...),
                  "tenon::array: not a property; there are c_contiguous, f_contiguous, cpu, cuda, rocm, "
                  "any_device, aligned<N>, convert and narrowing");
    static_assert((0 + ... + static_cast<int>(is_order<Props>)) <= 1,
                  "tenon::array: c_contiguous and f_contiguous contradict each other");
    static_assert((0 + ... + static_cast<int>(is_place<Props>)) <= 1, "tenon::array: state one device only");
    static_assert((0 + ... + static_cast<int>(alignment_of<Props> != 0)) <= 1,
                  "tenon::array: state one alignment only");
    static_assert(
        std::is_const_v<T> || !is_one_of<convert, Props...>,
        "tenon::array: convert needs a const element type; what is written to a converted copy would "
        "be lost");
    static_assert(!std::is_void_v<T> || !is_one_of<convert, Props...>,
                  "tenon::array: convert needs an element type to convert to");
    static_assert(is_one_of<convert, Props...> || !is_one_of<narrowing, Props...>,
                  "tenon::array: narrowing says how far convert may go; state both");

    template <class P>
    static constexpr bool has = is_one_of<P, Props...>;

    static constexpr bool on_host = !(is_place<Props> || ...) || has<cpu>;
    static constexpr conversions converting = has<narrowing> ? conversions::narrowing
                                              : has<convert> ? conversions::safe
                                                             : conversions::none;

    static constexpr int rank = [] {
        if constexpr (is_shape_pattern<extents_type>)
            return Extents.rank;
        else
            return static_cast<int>(Extents);
    }();
    static_assert(rank >= dynamic_rank && rank <= max_rank, "tenon::array: no tensor has this many axes");

    static constexpr request wanted = [] {
        request r;
        if constexpr (!std::is_void_v<T>) r.type = dtype_of<T>;
        r.rank = rank;
        if constexpr (is_shape_pattern<extents_type>) r.shape = extents_type::extents;
        r.space = on_host && !has<cpu> ? memory_space::host : memory_space::any;
        r.kind = has<cpu>    ? abi::device_code::cpu
                 : has<cuda> ? abi::device_code::cuda
                 : has<rocm> ? abi::device_code::rocm
                             : -1;
        r.order = has<c_contiguous>   ? memory_order::c
                  : has<f_contiguous> ? memory_order::f
                                      : memory_order::any;
        r.writable = !std::is_const_v<T>;
        constexpr std::size_t stated =
            (std::size_t{1} + ... + (alignment_of<Props> == 0 ? 0 : alignment_of<Props> - 1));
        std::size_t natural = 1;
        if constexpr (!std::is_void_v<T>) natural = on_host ? alignof(T) : 1;
        r.alignment = static_cast<std::uint32_t>(stated > natural ? stated : natural);
        return r;
    }();
};

}  // namespace bind

/// A shape for `array`: `shape<any, 3>` is any number of rows of three.
template <std::int64_t... Extents>
inline constexpr bind::shape_pattern<Extents...> shape{};

}  // namespace tenon
