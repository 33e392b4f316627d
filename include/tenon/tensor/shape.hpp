// tenon/tensor/shape.hpp: sizes, spans, strides and contiguity, in arithmetic that cannot overflow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include <tenon/value/dtype.hpp>

namespace tenon {

/// More axes than this are refused before anything behind them is read; NumPy has the same limit.
inline constexpr std::int32_t max_rank = 64;

using extents = std::span<const std::int64_t>;

namespace detail {

/// Whether a product or sum does not fit; `out` is what is left of it in 64 bits.
constexpr bool mul_overflows(std::int64_t a, std::int64_t b, std::int64_t& out) noexcept {
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_mul_overflow(a, b, &out);
#else
    out = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    return a == -1 ? b == std::numeric_limits<std::int64_t>::min() : a != 0 && out / a != b;
#endif
}
constexpr bool add_overflows(std::int64_t a, std::int64_t b, std::int64_t& out) noexcept {
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_add_overflow(a, b, &out);
#else
    out = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    return b < 0 ? out > a : out < a;
#endif
}

/// The same numbers, one by one.
[[nodiscard]] constexpr bool is_same(extents a, extents b) noexcept {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (a[i] != b[i]) return false;
    return true;
}

}  // namespace detail

/// Number of elements; nullopt when it does not fit. A zero extent makes it 0 whatever the others are.
/// Extents must not be negative.
[[nodiscard]] constexpr std::optional<std::int64_t> element_count(extents shape) noexcept {
    std::int64_t count = 1;
    bool overflow = false;
    for (const std::int64_t e : shape) {
        if (e == 0) return 0;
        overflow |= detail::mul_overflows(count, e, count);
    }
    if (overflow) return std::nullopt;
    return count;
}

/// Bytes that `count` elements take side by side. Packed sub-byte elements share bytes and the sum is rounded
/// up once; padded ones take whole bytes each. nullopt when it does not fit.
TENON_HOT [[nodiscard]] constexpr std::optional<std::int64_t> byte_count(std::int64_t count, dtype t,
                                                                         bool padded) noexcept {
    std::int64_t bytes = 0;
    if (!t.is_subbyte() || padded) [[likely]] {
        if (detail::mul_overflows(count, t.itemsize(), bytes)) return std::nullopt;
        return bytes;
    }
    const std::int64_t bits = t.bits_per_element();
    const std::int64_t whole = count / 8;  // eight elements are always whole bytes
    const std::int64_t rest = (count % 8 * bits + 7) / 8;
    if (detail::mul_overflows(whole, bits, bytes) || detail::add_overflows(bytes, rest, bytes))
        return std::nullopt;
    return bytes;
}

/// Offsets, in elements from the first one, of the lowest and highest element a layout touches.
struct element_span {
    std::int64_t low = 0;
    std::int64_t high = 0;

    /// Takes one more axis in; false when an offset does not fit. An axis of one element adds nothing.
    constexpr bool extend(std::int64_t extent, std::int64_t stride) noexcept {
        std::int64_t reach = 0;
        if (extent <= 1) return true;
        if (detail::mul_overflows(extent - 1, stride, reach)) return false;
        const bool low_overflows = detail::add_overflows(low, reach < 0 ? reach : 0, low);
        const bool high_overflows = detail::add_overflows(high, reach < 0 ? 0 : reach, high);
        return !low_overflows && !high_overflows;
    }
};

/// nullopt when an offset does not fit. Strides of axes with at most one element touch nothing and may be
/// anything. The shape must have no zero extent.
[[nodiscard]] constexpr std::optional<element_span> touched_span(extents shape, extents strides) noexcept {
    element_span s;
    for (std::size_t i = 0; i < shape.size(); ++i)
        if (!s.extend(shape[i], strides[i])) return std::nullopt;
    return s;
}

/// Writes row-major strides for `shape`; an empty shape too large for real strides gets ones.
constexpr void fill_row_major(extents shape, std::int64_t* strides) noexcept {
    std::int64_t step = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
        strides[i] = step;
        if (detail::mul_overflows(step, shape[i] > 1 ? shape[i] : 1, step)) step = 1;
    }
}

namespace detail {
/// The one contiguity rule: walking the axes from fastest to slowest, every axis that has more than one
/// element must step over exactly what came before. Axes of extent 1 do not count, and nothing is contiguous
/// trivially.
template <bool RowMajor>
constexpr bool is_compact(extents shape, extents strides) noexcept {
    std::int64_t step = 1;
    bool compact = true;
    for (std::size_t n = 0; n < shape.size(); ++n) {
        const std::size_t i = RowMajor ? shape.size() - 1 - n : n;
        if (shape[i] == 0) return true;
        if (shape[i] == 1) continue;
        if (strides[i] != step || mul_overflows(step, shape[i], step)) compact = false;
    }
    return compact;
}
}  // namespace detail

[[nodiscard]] constexpr bool is_c_contiguous(extents shape, extents strides) noexcept {
    return detail::is_compact<true>(shape, strides);
}
[[nodiscard]] constexpr bool is_f_contiguous(extents shape, extents strides) noexcept {
    return detail::is_compact<false>(shape, strides);
}

/// True when two index tuples may meet in one element (a broadcast axis, a sliding window). Conservative: an
/// exotic layout that interleaves without meeting counts as overlapping.
[[nodiscard]] TENON_API bool may_overlap(extents shape, extents strides) noexcept;

}  // namespace tenon
