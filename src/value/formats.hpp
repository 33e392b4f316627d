// src/value/formats.hpp: the neighbours' spellings of element types, read: NumPy's typestr, buffer formats.
#pragma once

#include <tenon/value/dtype_names.hpp>
#include "../standard.hpp"

namespace tenon {

namespace detail {

/// True for a byte-order mark that means this machine's own order for elements of `itemsize` bytes.
constexpr bool is_native_order(char mark, std::size_t itemsize) noexcept {
    if (itemsize == 1 || mark == '@' || mark == '=') return true;
    return mark == '<' ? little_endian : (mark == '>' || mark == '!') && !little_endian;
}

}  // namespace detail

/// Why a format string could not be read as an element type.
enum class format_fault { none, byte_swapped, unsupported, size_mismatch };

struct parsed_format {
    dtype type{};
    format_fault fault = format_fault::none;
};

/// Reads a NumPy typestr ("<f4", "|b1"). Only kinds with a fixed meaning are taken (no void, string, time).
[[nodiscard]] constexpr parsed_format dtype_from_typestr(std::string_view s) noexcept {
    if (s.size() < 3) return {{}, format_fault::unsupported};
    const char mark = s[0];
    if (mark != '<' && mark != '>' && mark != '=' && mark != '|') return {{}, format_fault::unsupported};
    for (const dtype_entry& e : detail::dtype_table) {
        if (e.typestr.empty() || e.typestr != s.substr(1)) continue;
        if (!detail::is_native_order(mark, e.type.itemsize())) return {{}, format_fault::byte_swapped};
        return {e.type};
    }
    return {{}, format_fault::unsupported};
}

namespace detail {
/// The letter of a buffer format that is one. The complex numbers have two spellings: a letter in Python
/// 3.14's struct and ctypes, the table's everywhere else, 3.15 included.
constexpr std::uint8_t letter_of(std::string_view format) noexcept {
    if (format.size() == 2 && format[0] == 'Z') return format[1] == 'f' ? 'F' : format[1] == 'd' ? 'D' : 0;
    return format.size() == 1 ? static_cast<std::uint8_t>(format[0]) : 0;
}
/// For each letter, its line in the table plus one; zero for none.
TENON_PRIVATE inline constexpr auto line_of_letter = [] {
    std::array<std::uint8_t, 256> lines{};
    for (std::size_t i = 0; i < dtype_table.size(); ++i)
        if (const std::uint8_t letter = letter_of(dtype_table[i].buffer_format); letter != 0)
            lines[letter] = static_cast<std::uint8_t>(i + 1);
    return lines;
}();
}  // namespace detail

/// Reads a buffer-protocol format. The letter gives the kind, `itemsize` the size, and the two must agree;
/// a structure, a repeat count, a pointer or a string is not an element type.
[[nodiscard]] constexpr parsed_format dtype_from_buffer_format(std::string_view s,
                                                               std::size_t itemsize) noexcept {
    char mark = '@';
    if (!s.empty() && (s[0] == '@' || s[0] == '=' || s[0] == '<' || s[0] == '>' || s[0] == '!')) {
        mark = s[0];
        s.remove_prefix(1);
    }
    // Letters whose size depends on the platform or the mark, and 'c' (one raw byte), are respelled first.
    const char first = s.size() == 1 ? s[0] : '\0';
    if (first == 'l' || first == 'n') s = itemsize == 8 ? "q" : itemsize == 4 && first == 'l' ? "i" : "x";
    if (first == 'L' || first == 'N') s = itemsize == 8 ? "Q" : itemsize == 4 && first == 'L' ? "I" : "x";
    if (first == 'c') s = "B";
    if (s == "x" && first != 'x') return {{}, format_fault::size_mismatch};
    const std::uint8_t line = detail::line_of_letter[detail::letter_of(s)];
    if (line == 0) return {{}, format_fault::unsupported};
    const dtype type = detail::dtype_table[line - 1U].type;
    if (type.itemsize() != itemsize) return {{}, format_fault::size_mismatch};
    if (!detail::is_native_order(mark, itemsize)) return {{}, format_fault::byte_swapped};
    return {type};
}

}  // namespace tenon
