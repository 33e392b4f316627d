// src/arrow/metadata.hpp: what the metadata of an Arrow type says of the canonical extension
// `arrow.fixed_shape_tensor`, read within bounds.
#pragma once

#include <tenon/tensor/validate.hpp>
#include "../standard.hpp"

namespace tenon::arrow {

/// The axes inside one item: `shape` as they lie in memory, and for each that is shown the one it is.
struct tensor_axes {
    std::int32_t rank = 0;
    std::int64_t shape[max_rank];
    std::int64_t order[max_rank];
};

namespace detail {

/// The name and parameters of an extension; views into the metadata.
struct extension {
    std::string_view name;
    std::string_view parameters;
};

/// Reads the pairs of the metadata. No key or value of honest metadata comes near the limits.
[[nodiscard]] inline result<extension> find_extension(const char* metadata) noexcept {
    static constexpr std::int32_t most_pairs = 4096;
    static constexpr std::int32_t most_bytes = 1 << 20;
    extension found;
    if (metadata == nullptr) return found;
    if (tenon::detail::is_implausible(metadata))
        return malformed("metadata", "the pointer cannot be metadata");
    const auto number = [&] {
        std::int32_t value = 0;
        std::memcpy(&value, metadata, sizeof value);
        metadata += sizeof value;
        return value;
    };
    const std::int32_t pairs = number();
    if (pairs < 0 || pairs > most_pairs)
        return malformed("metadata", "the number of entries cannot be true", pairs);
    std::int64_t total = 0;
    for (std::int32_t i = 0; i < pairs; ++i) {
        std::string_view texts[2];
        for (std::string_view& text : texts) {
            const std::int32_t size = number();
            total += size;
            if (size < 0 || total > most_bytes)
                return malformed("metadata", "the length of an entry cannot be true", size);
            text = {metadata, static_cast<std::size_t>(size)};
            metadata += size;
        }
        if (texts[0] == "ARROW:extension:name") found.name = texts[1];
        if (texts[0] == "ARROW:extension:metadata") found.parameters = texts[1];
    }
    return found;
}

/// As much of JSON as the parameters of an extension need: an object of which some members are lists of
/// integers.
class json_reader {
public:
    explicit json_reader(std::string_view text) noexcept
        : at_(text.data()), end_(text.data() + text.size()) {}

    /// `member(key)` for each member, which must read the value. False when the text is no such object.
    template <class Member>
    [[nodiscard]] bool object(Member&& member) noexcept {
        std::string_view key;
        return sequence('{', '}', [&] { return string(key) && skip(':') && member(key); }) && is_done();
    }
    /// A list of at most `max_rank` integers that are not negative.
    [[nodiscard]] bool integers(std::int64_t* out, std::int32_t& count) noexcept {
        count = 0;
        return sequence('[', ']', [&] { return count < max_rank && integer(out[count++]); });
    }
    [[nodiscard]] bool null() noexcept { return word("null"); }
    /// Any value, which is not looked at.
    [[nodiscard]] bool anything(int depth = 0) noexcept {
        std::string_view text;
        if (depth > 16) return false;
        if (peek() == '"') return string(text);
        if (peek() == '[') return sequence('[', ']', [&] { return anything(depth + 1); });
        if (peek() == '{')
            return sequence('{', '}', [&] { return string(text) && skip(':') && anything(depth + 1); });
        if (word("null") || word("true") || word("false")) return true;
        const char* const first = at_;
        while (at_ != end_ && std::string_view("+-.0123456789eE").find(*at_) != std::string_view::npos) ++at_;
        return at_ != first;
    }

private:
    template <class Item>
    [[nodiscard]] bool sequence(char open, char close, Item&& item) noexcept {
        if (!skip(open)) return false;
        if (skip(close)) return true;
        while (item())
            if (!skip(',')) return skip(close);
        return false;
    }
    void skip_space() noexcept {
        while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r')) ++at_;
    }
    [[nodiscard]] char peek() noexcept {
        skip_space();
        return at_ != end_ ? *at_ : '\0';
    }
    [[nodiscard]] bool is_done() noexcept {
        skip_space();
        return at_ == end_;
    }
    [[nodiscard]] bool skip(char c) noexcept {
        if (peek() != c) return false;
        ++at_;
        return true;
    }
    [[nodiscard]] bool word(std::string_view text) noexcept {
        skip_space();
        if (!std::string_view(at_, end_).starts_with(text)) return false;
        at_ += text.size();
        return true;
    }
    [[nodiscard]] bool string(std::string_view& out) noexcept {
        if (!skip('"')) return false;
        const char* const first = at_;
        while (at_ != end_ && *at_ != '"') at_ += *at_ == '\\' && at_ + 1 != end_ ? 2 : 1;
        out = {first, at_};
        return skip('"');
    }
    [[nodiscard]] bool integer(std::int64_t& out) noexcept {
        skip_space();
        const char* const first = at_;
        out = 0;
        for (; at_ != end_ && *at_ >= '0' && *at_ <= '9'; ++at_) {
            if (tenon::detail::mul_overflows(out, 10, out) ||
                tenon::detail::add_overflows(out, *at_ - '0', out))
                return false;
        }
        return at_ != first;
    }

    const char* at_;
    const char* end_;
};

}  // namespace detail

/// The axes that stand for the `items` elements of a fixed-size list with this metadata: one, unless it is a
/// tensor of fixed shape, whose shape must then have room for exactly those.
[[nodiscard]] inline result<void> read_axes(const char* metadata, std::int64_t items,
                                            tensor_axes& out) noexcept {
    const auto found = detail::find_extension(metadata);
    if (!found) return found.error();
    if (found->name != "arrow.fixed_shape_tensor") {
        out.rank = 1;
        out.shape[0] = items;
        out.order[0] = 0;
        return {};
    }
    std::int32_t ordered = -1;
    bool has_shape = false;
    detail::json_reader json(found->parameters);
    const bool read = json.object([&](std::string_view key) {
        if (key == "shape") return has_shape = json.integers(out.shape, out.rank);
        if (key == "permutation") return json.null() || json.integers(out.order, ordered);
        return json.anything();
    });
    if (!read || !has_shape)
        return malformed("metadata", "the shape of an arrow.fixed_shape_tensor cannot be read");
    const auto rank = static_cast<std::size_t>(out.rank);
    if (element_count({out.shape, rank}) != items)
        return malformed("metadata", "the shape of an arrow.fixed_shape_tensor is not that of its lists",
                         items);
    if (ordered < 0)
        for (std::int32_t i = 0; i < out.rank; ++i) out.order[i] = i;
    else if (ordered != out.rank)
        return malformed("metadata", "the permutation of an arrow.fixed_shape_tensor has another rank",
                         ordered);
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < rank; ++i)
        if (out.order[i] < out.rank) seen |= std::uint64_t{1} << static_cast<unsigned>(out.order[i]);
    if (std::popcount(seen) != out.rank)
        return malformed("metadata", "the permutation of an arrow.fixed_shape_tensor is none");
    return {};
}

}  // namespace tenon::arrow
