// src/value/digits.hpp: whole numbers in digits, written and read.
#pragma once

#include "../standard.hpp"

namespace tenon {

/// A number in digits of base 10 or 16, kept here.
class digits {
public:
    explicit digits(std::uint64_t number, bool is_negative = false, unsigned base = 10) noexcept {
        do {
            *--first_ = "0123456789abcdef"[number % base];
            number /= base;
        } while (number != 0);
        if (is_negative) *--first_ = '-';
    }
    explicit digits(std::int64_t number) noexcept
        : digits(number < 0 ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number),
                 number < 0) {}
    digits(const digits&) = delete;  // it points into itself
    digits& operator=(const digits&) = delete;

    [[nodiscard]] std::string_view text() const noexcept {
        return {first_, static_cast<std::size_t>(std::end(room_) - first_)};
    }

private:
    char room_[20];
    char* first_ = std::end(room_);
};

/// The number that a text begins with, taken off it; negative when there is none, or it is too large.
[[nodiscard]] inline std::int64_t take_number(std::string_view& text) noexcept {
    std::int64_t number = text.empty() || text[0] < '0' || text[0] > '9' ? -1 : 0;
    for (; !text.empty() && text[0] >= '0' && text[0] <= '9'; text.remove_prefix(1)) {
        const int digit = text[0] - '0';
        const bool fits = number >= 0 && number <= (std::numeric_limits<std::int64_t>::max() - digit) / 10;
        number = fits ? 10 * number + digit : -1;
    }
    return number;
}

}  // namespace tenon
