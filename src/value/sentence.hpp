// src/value/sentence.hpp: sentences put together from their parts, by one call for each.
#pragma once

#include "../standard.hpp"

namespace tenon {

/// A part of a sentence: text, which must live until the sentence is made, or a number, which becomes digits.
class sentence_part {
public:
    // NOLINTBEGIN(google-explicit-constructor)
    sentence_part(const char* text) noexcept : text_(text) {}
    sentence_part(std::string_view text) noexcept : text_(text) {}
    sentence_part(const std::string& text) noexcept : text_(text) {}
    sentence_part(char one) noexcept : digits_{one}, text_(digits_, 1) {}
    sentence_part(std::int64_t number) noexcept { write(number); }
    sentence_part(std::uint64_t number) noexcept { write(number); }
    sentence_part(unsigned number) noexcept { write(static_cast<std::int64_t>(number)); }
    sentence_part(int number) noexcept { write(static_cast<std::int64_t>(number)); }
    // NOLINTEND(google-explicit-constructor)
    sentence_part(const sentence_part&) = delete;  // it may point into itself
    sentence_part& operator=(const sentence_part&) = delete;

    [[nodiscard]] std::string_view text() const noexcept { return text_; }

private:
    template <class Number>
    void write(Number number) noexcept {
        char* const end = std::to_chars(digits_, std::end(digits_), number).ptr;
        text_ = {digits_, static_cast<std::size_t>(end - digits_)};
    }

    char digits_[20]{};
    std::string_view text_;
};

/// Appends the parts to what is there, of which they may be a part themselves if it has room.
inline void append(std::string& to, std::initializer_list<sentence_part> parts) {
    for (const sentence_part& each : parts) to += each.text();
}
[[nodiscard]] inline std::string sentence(std::initializer_list<sentence_part> parts) {
    std::string out;
    append(out, parts);
    return out;
}

}  // namespace tenon
