// tenon/bind/phrase.hpp: a request in words, "writable float32[*, 3] on cuda", and read back from them.
//
// The words stand in signatures, stubs and error messages alike. They are read back when a binder says that
// no overload fits: its message has the signatures in it, and nothing else is left of the types by then.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

#include <tenon/abi/dlpack.hpp>
#include <tenon/tensor/request.hpp>
#include <tenon/value/device.hpp>
#include <tenon/value/dtype_names.hpp>

namespace tenon::bind {

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

/// How far an argument may be converted.
enum class conversions : std::uint8_t { none, safe, narrowing };

/// Whether elements of one type may become those of another for a parameter.
[[nodiscard]] constexpr bool may_become(dtype from, dtype to, conversions converts) noexcept {
    return converts != conversions::none && can_convert(from, to, converts == conversions::narrowing);
}

namespace words {
inline constexpr std::string_view writable = "writable ";
inline constexpr std::string_view c_order = "C-contiguous ";
inline constexpr std::string_view f_order = "F-contiguous ";
inline constexpr std::string_view any_type = "any";
inline constexpr std::string_view any_shape = "...";
inline constexpr std::string_view any_extent = "*";
inline constexpr std::string_view on = " on ";
inline constexpr std::string_view any_place = "any device";
inline constexpr std::string_view aligned = ", aligned to ";
inline constexpr std::string_view bytes = " bytes";
inline constexpr std::string_view convertible = ", or convertible";
inline constexpr std::string_view narrowing = " with narrowing";
}  // namespace words

/// What the elements need anyway where plain code reads them, and so is not said.
[[nodiscard]] constexpr std::uint32_t natural_alignment(const request& r) noexcept {
    const bool on_host = r.space == memory_space::host || r.kind == abi::device_code::cpu;
    return r.type && on_host ? r.type->alignment() : 1U;
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

/// The request in words, with a word more if what differs in element type or order is converted.
[[nodiscard]] constexpr phrase spell(const request& r, conversions converts = conversions::none) noexcept {
    phrase out;
    if (r.writable) out << words::writable;
    if (r.order != memory_order::any) out << (r.order == memory_order::c ? words::c_order : words::f_order);
    if (r.type)
        spell_type(out, *r.type);
    else
        out << words::any_type;
    out << "[";
    if (r.rank < 0 && r.shape.empty()) out << words::any_shape;
    const auto axes = r.shape.empty() ? static_cast<std::size_t>(r.rank < 0 ? 0 : r.rank) : r.shape.size();
    for (std::size_t i = 0; i < axes; ++i) {
        if (i != 0) out << ", ";
        if (r.shape.empty() || r.shape[i] == any)
            out << words::any_extent;
        else
            out << r.shape[i];
    }
    out << "]";
    if (r.kind >= 0) {
        for (const auto& entry : tenon::detail::device_table)
            if (entry.type == r.kind) out << words::on << entry.name;
    } else if (r.space == memory_space::any) {
        out << words::on << words::any_place;
    }
    if (r.alignment > natural_alignment(r))
        out << words::aligned << std::int64_t{r.alignment} << words::bytes;
    if (converts != conversions::none) out << words::convertible;
    if (converts == conversions::narrowing) out << words::narrowing;
    return out;
}

/// A request read from words, with the extents it points to.
class read_request {
public:
    /// Nullopt when these are not words of `spell`.
    [[nodiscard]] static std::optional<read_request> from(std::string_view text) noexcept {
        std::optional<read_request> out(std::in_place);
        if (!out->read(text)) out.reset();
        return out;
    }
    [[nodiscard]] conversions converts() const noexcept { return converts_; }
    /// Good for as long as this object.
    [[nodiscard]] request value() const noexcept {
        request r = request_;
        if (r.rank > 0) r.shape = {extents_, static_cast<std::size_t>(r.rank)};
        return r;
    }

private:
    static bool skip(std::string_view& text, std::string_view word) noexcept {
        if (!text.starts_with(word)) return false;
        text.remove_prefix(word.size());
        return true;
    }
    static bool number(std::string_view& text, std::int64_t& out) noexcept {
        const auto end = std::from_chars(text.data(), text.data() + text.size(), out);
        if (end.ec != std::errc() || text.front() == '-') return false;
        text.remove_prefix(static_cast<std::size_t>(end.ptr - text.data()));
        return true;
    }
    bool read_type(std::string_view& text) noexcept {
        std::int64_t code = 0, bits = 0, lanes = 0;
        if (skip(text, "dtype(")) {
            if (!number(text, code) || !skip(text, ",") || !number(text, bits) || !skip(text, ",") ||
                !number(text, lanes) || !skip(text, ")"))
                return false;
            if (code > 0xff || bits > 0xff || lanes > 0xffff) return false;
            request_.type = dtype(static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits),
                                  static_cast<std::uint16_t>(lanes));
            return true;
        }
        const std::string_view name = text.substr(0, text.find('['));
        text.remove_prefix(name.size());
        request_.type = dtype_from_name(name);
        return request_.type || name == words::any_type;
    }
    bool read_extents(std::string_view& text) noexcept {
        if (!skip(text, "[")) return false;
        if (skip(text, words::any_shape)) return skip(text, "]");
        request_.rank = 0;
        while (!skip(text, "]")) {
            if (request_.rank == max_rank || (request_.rank > 0 && !skip(text, ", "))) return false;
            std::int64_t& extent = extents_[request_.rank++];
            if (skip(text, words::any_extent))
                extent = any;
            else if (!number(text, extent))
                return false;
        }
        return true;
    }
    bool read_place(std::string_view& text) noexcept {
        request_.space = memory_space::host;
        if (!skip(text, words::on)) return true;
        request_.space = memory_space::any;
        if (skip(text, words::any_place)) return true;
        const std::string_view kind = text.substr(0, text.find(','));
        text.remove_prefix(kind.size());
        for (const auto& entry : tenon::detail::device_table)
            if (entry.name == kind) request_.kind = entry.type;
        return request_.kind >= 0;
    }
    bool read(std::string_view text) noexcept {
        request_.writable = skip(text, words::writable);
        if (skip(text, words::c_order))
            request_.order = memory_order::c;
        else if (skip(text, words::f_order))
            request_.order = memory_order::f;
        if (!read_type(text) || !read_extents(text) || !read_place(text)) return false;
        request_.alignment = natural_alignment(request_);
        std::int64_t bytes = 0;
        if (skip(text, words::aligned)) {
            if (!number(text, bytes) || bytes > 0xffff'ffff || !skip(text, words::bytes)) return false;
            request_.alignment = static_cast<std::uint32_t>(bytes);
        }
        if (skip(text, words::convertible))
            converts_ = skip(text, words::narrowing) ? conversions::narrowing : conversions::safe;
        return text.empty();
    }

    request request_;
    conversions converts_ = conversions::none;
    std::int64_t extents_[max_rank] = {};
};

}  // namespace tenon::bind
