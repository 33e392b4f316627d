// src/arrow/metadata.hpp: what a type's metadata says of the extension `arrow.fixed_shape_tensor`.
#pragma once

#include <tenon/tensor/validate.hpp>
#include "../value/digits.hpp"

namespace tenon::arrow {

/// The axes of a tensor, of which the first is the array's own; with room for those of one list too many.
struct item_axes {
    std::int32_t rank = 1;
    std::int64_t extent[2 * max_rank];    ///< of each as it lies in memory, row-major
    std::int64_t shown_as[2 * max_rank];  ///< which of those the axis of the tensor is

    item_axes() noexcept { shown_as[0] = 0; }
};

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
    if (detail::is_implausible(metadata)) return malformed("metadata", "the pointer cannot be metadata");
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

/// As much of JSON as an extension's parameters need: an object, some members of which list integers.
class json_reader {
public:
    explicit json_reader(std::string_view text) noexcept : rest_(text) {}

    /// `member(key)` for each member, which must read the value. False when what comes is no such object.
    template <class Member>
    [[nodiscard]] bool object(Member&& member) noexcept {
        std::string_view key;
        return sequence('{', '}', [&] { return string(key) && skip(':') && member(key); });
    }
    /// A list of at most `max_rank` integers that are not negative.
    [[nodiscard]] bool integers(std::int64_t* out, std::int32_t& count) noexcept {
        count = 0;
        return sequence('[', ']', [&] {
            skip_all(space);
            if (count >= max_rank) return false;
            out[count] = take_number(rest_);
            return out[count++] >= 0;
        });
    }
    [[nodiscard]] bool word(std::string_view text) noexcept {
        skip_all(space);
        if (!rest_.starts_with(text)) return false;
        rest_.remove_prefix(text.size());
        return true;
    }
    /// Any value, which is not looked at.
    [[nodiscard]] bool anything(int depth = 0) noexcept {
        std::string_view text;
        if (depth > 16) return false;
        if (comes('"')) return string(text);
        if (comes('[')) return sequence('[', ']', [&] { return anything(depth + 1); });
        if (comes('{')) return object([&](std::string_view) { return anything(depth + 1); });
        return word("null") || word("true") || word("false") || skip_all("+-.0123456789eE") != 0;
    }
    [[nodiscard]] bool is_done() noexcept {
        skip_all(space);
        return rest_.empty();
    }

private:
    static constexpr const char* space = " \t\n\r";

    template <class Item>
    [[nodiscard]] bool sequence(char open, char close, Item&& item) noexcept {
        if (!skip(open)) return false;
        if (skip(close)) return true;
        while (item())
            if (!skip(',')) return skip(close);
        return false;
    }
    /// Skips the characters that are among these; how many.
    std::size_t skip_all(const char* these) noexcept {
        const std::size_t count = std::min(rest_.find_first_not_of(these), rest_.size());
        rest_.remove_prefix(count);
        return count;
    }
    [[nodiscard]] bool comes(char c) noexcept {
        skip_all(space);
        return rest_.starts_with(c);
    }
    [[nodiscard]] bool skip(char c) noexcept { return word({&c, 1}); }
    [[nodiscard]] bool string(std::string_view& out) noexcept {
        if (!skip('"')) return false;
        std::size_t size = 0;
        while (size < rest_.size() && rest_[size] != '"') size += rest_[size] == '\\' ? 2U : 1U;
        out = rest_.substr(0, size);
        rest_.remove_prefix(out.size());
        return skip('"');
    }

    std::string_view rest_;
};

/// Adds the axes that stand for the `items` elements of a fixed-size list with this metadata: one, unless it
/// is a tensor of fixed shape, whose shape must then have room for exactly those.
[[nodiscard]] inline result<void> add_axes(const char* metadata, std::int64_t items,
                                           item_axes& out) noexcept {
    const auto found = find_extension(metadata);
    if (!found) return found.error();
    std::int64_t* const shape = out.extent + out.rank;
    std::int64_t* const order = out.shown_as + out.rank;
    std::int32_t rank = 1;
    std::int32_t ordered = -1;
    shape[0] = items;
    if (found->name == "arrow.fixed_shape_tensor") {
        bool has_shape = false;
        json_reader json(found->parameters);
        const bool read = json.object([&](std::string_view key) {
            if (key == "shape") return has_shape = json.integers(shape, rank);
            if (key == "permutation") return json.word("null") || json.integers(order, ordered);
            return json.anything();
        });
        if (!read || !has_shape || !json.is_done())
            return malformed("metadata", "the shape of an arrow.fixed_shape_tensor cannot be read");
        if (element_count({shape, static_cast<std::size_t>(rank)}) != items)
            return malformed("metadata", "the shape of an arrow.fixed_shape_tensor is not that of its lists",
                             items);
        if (ordered >= 0 && ordered != rank)
            return malformed("metadata", "the permutation of an arrow.fixed_shape_tensor has another rank",
                             ordered);
    }
    if (out.rank + rank > max_rank) return refused("ndim", "too many axes", out.rank + rank, max_rank);
    std::uint64_t seen = 0;
    for (std::int32_t i = 0; i < rank; ++i) {
        if (ordered < 0) order[i] = i;
        if (order[i] >= rank) break;
        seen |= std::uint64_t{1} << static_cast<unsigned>(order[i]);
        order[i] += out.rank;
    }
    if (std::popcount(seen) != rank)
        return malformed("metadata", "the permutation of an arrow.fixed_shape_tensor is none");
    out.rank += rank;
    return {};
}

}  // namespace tenon::arrow
