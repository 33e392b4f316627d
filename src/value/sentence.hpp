// src/value/sentence.hpp: sentences put together from their parts, by one call for each.
#pragma once

#include "digits.hpp"

namespace tenon {

/// A part of a sentence: text, which must live until the sentence is made, or a number, which becomes digits.
class sentence_part {
public:
    // NOLINTBEGIN(google-explicit-constructor)
    sentence_part(const char* text) noexcept : text_(text) {}
    sentence_part(std::string_view text) noexcept : text_(text) {}
    sentence_part(const std::string& text) noexcept : text_(text) {}
    sentence_part(std::int64_t number) noexcept : number_(number), text_(number_.text()) {}
    sentence_part(std::uint64_t number) noexcept : number_(number), text_(number_.text()) {}
    sentence_part(unsigned number) noexcept : sentence_part(std::uint64_t{number}) {}
    sentence_part(int number) noexcept : sentence_part(std::int64_t{number}) {}
    // NOLINTEND(google-explicit-constructor)

    [[nodiscard]] std::string_view text() const noexcept { return text_; }

private:
    digits number_{std::uint64_t{0}};
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
