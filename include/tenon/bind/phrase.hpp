// tenon/bind/phrase.hpp: a request in words, "writable float32[*, 3] on cuda", for signatures, stubs and
// error messages alike: made by the compiler, once for each type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <tenon/tensor/request.hpp>
#include <tenon/value/device.hpp>
#include <tenon/value/dtype_names.hpp>

namespace tenon::bind {

/// How far an argument may be converted.
enum class conversions : std::uint8_t { none, safe, narrowing, lossy };

/// Text of limited length that can be made at compile time.
struct phrase {
    static constexpr std::size_t capacity = 1500;  // 64 axes of 20 digits each
    char text[capacity] = {};
    std::size_t size = 0;

    constexpr phrase& operator<<(std::string_view more) noexcept {
        for (const char c : more)
            if (size < capacity) text[size++] = c;
        return *this;
    }
    constexpr phrase& operator<<(std::int64_t number) noexcept {
        char digits[20] = {};
        std::size_t n = 0;
        if (number < 0) *this << "-";
        auto rest = number < 0 ? 0U - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
        do digits[n++] = static_cast<char>('0' + rest % 10);
        while ((rest /= 10) != 0);
        while (n > 0) *this << std::string_view(&digits[--n], 1);
        return *this;
    }
    [[nodiscard]] constexpr std::string_view view() const noexcept { return {text, size}; }
};

/// What is asked for can be read by plain code.
[[nodiscard]] constexpr bool is_on_host(const request& r) noexcept {
    return r.space == memory_space::host || r.kind == abi::device_code::cpu;
}
/// What the elements need anyway where that reads them, and so is not said; those of a set at least.
[[nodiscard]] constexpr std::uint32_t natural_alignment(const request& r) noexcept {
    if (!is_on_host(r)) return 1U;
    if (r.type) return r.type->alignment();
    std::uint32_t least = r.types.empty() ? 1U : r.types[0].alignment();
    for (const dtype type : r.types) least = type.alignment() < least ? type.alignment() : least;
    return least;
}

/// The element type by its name, or by its numbers when it has none.
constexpr void spell_type(phrase& out, dtype type) noexcept {
    // By hand: under its sanitizers GCC has no constant that compares a pointer with null (GCC bug 71962).
    for (const dtype_entry& known : tenon::detail::dtype_table) {
        if (known.type == type) {
            out << known.name;
            return;
        }
    }
    out << "dtype(" << std::int64_t{type.code} << "," << std::int64_t{type.bits} << ","
        << std::int64_t{type.lanes} << ")";
}

/// "float32", "float32|float64" or "any".
constexpr void spell_types(phrase& out, const request& r) noexcept {
    if (r.type) {
        spell_type(out, *r.type);
    } else if (r.types.empty()) {
        out << "any";
    } else {
        for (std::size_t i = 0; i < r.types.size(); ++i) {
            if (i != 0) out << "|";
            spell_type(out, r.types[i]);
        }
    }
}

/// "C-contiguous ".
constexpr void spell_order(phrase& out, memory_order order) noexcept {
    if (order == memory_order::any) return;
    if (order != memory_order::c_or_f) out << (order == memory_order::c ? "C-" : "F-");
    out << "contiguous ";
}

/// The request in words, with a word more if what differs in element type or order is converted, and if a
/// number of Python's will do. `names`, if there are any, has one for each axis, or null.
[[nodiscard]] constexpr phrase spell(const request& r, conversions converts = conversions::none,
                                     bool takes_numbers = false,
                                     std::span<const char* const> names = {}) noexcept {
    phrase out;
    if (r.writable) out << "writable ";
    spell_order(out, r.order);
    spell_types(out, r);
    out << "[";
    if (r.rank < 0 && r.shape.empty()) out << "...";
    const auto axes = r.shape.empty() ? static_cast<std::size_t>(r.rank < 0 ? 0 : r.rank) : r.shape.size();
    for (std::size_t i = 0; i < axes; ++i) {
        if (i != 0) out << ", ";
        if (!names.empty() && names[i][0] != '\0')
            out << names[i];
        else if (r.shape.empty() || r.shape[i] == any)
            out << "*";
        else
            out << r.shape[i];
    }
    out << "]";
    if (r.kind >= 0) {
        for (const auto& entry : tenon::detail::device_table)
            if (entry.type == r.kind) out << " on " << entry.name;
    } else if (r.space == memory_space::any) {
        out << " on " << "any device";
    }
    if (r.alignment > natural_alignment(r)) out << ", aligned to " << std::int64_t{r.alignment} << " bytes";
    if (converts != conversions::none) out << ", or convertible";
    if (converts == conversions::narrowing) out << " with narrowing";
    if (converts == conversions::lossy) out << " with loss";
    if (takes_numbers) out << ", or a number";
    return out;
}

/// Text of exactly the length it has, ended by a zero.
template <std::size_t Size>
struct words {
    char text[Size + 1] = {};
    constexpr explicit words(const phrase& from) noexcept {
        for (std::size_t i = 0; i < Size; ++i) text[i] = from.text[i];
    }
    [[nodiscard]] constexpr std::string_view view() const noexcept { return {text, Size}; }
};

/// The texts, one after the other, in the `text` of a binder's own class for that.
template <template <std::size_t, class...> class Text, const std::string_view&... Parts>
[[nodiscard]] constexpr auto joined() noexcept {
    Text<(Parts.size() + ...)> out{};
    std::size_t at = 0;
    for (const std::string_view part : {Parts...})
        for (const char c : part) out.text[at++] = c;
    return out;
}

}  // namespace tenon::bind
