// tenon/tensor/axes.hpp: extents or strides as a caller writes them: `{2, 3}`, any integers, any list of
// them.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include <tenon/tensor/shape.hpp>

namespace tenon {

namespace detail {
/// An integer that counts: neither a truth value nor a character.
template <class I>
concept number = std::integral<I> && requires(I i) { std::in_range<std::int64_t>(i); } &&
                 !std::same_as<I, bool> && !std::same_as<I, char> && !std::same_as<I, wchar_t> &&
                 !std::same_as<I, char8_t> && !std::same_as<I, char16_t> && !std::same_as<I, char32_t>;

/// What can be walked and yields such numbers; `std::ranges` says no more of it and is slow to compile.
template <class L>
concept list_of_numbers = requires(L& list) {
    std::end(list);
    requires number<std::remove_cvref_t<decltype(*std::begin(list))>>;
};
}  // namespace detail

/// Up to `max_rank` numbers, from `{rows, columns}` of whatever integer types or from any list. One that does
/// not fit 64 signed bits becomes the lowest that does, which is no extent, and as a stride reaches outside
/// the address space; a list that is too long keeps its length and is refused for it.
class axes {
public:
    template <detail::number... I>
    axes(I... numbers) noexcept {  // NOLINT(google-explicit-constructor)
        (append(numbers), ...);
    }
    template <detail::list_of_numbers L>
    axes(L&& list) noexcept {  // NOLINT(google-explicit-constructor)
        for (const auto number : list) append(number);
    }

    [[nodiscard]] std::size_t size() const noexcept { return count_; }
    [[nodiscard]] bool is_too_long() const noexcept { return count_ > capacity; }
    /// As many as there is room for.
    [[nodiscard]] extents values() const noexcept { return {values_, is_too_long() ? capacity : count_}; }
    /// A copy of as many numbers as there are.
    void assign(const axes& other) noexcept {
        count_ = other.count_;
        std::memmove(values_, other.values_, other.values().size_bytes());
    }

private:
    static constexpr auto capacity = static_cast<std::size_t>(max_rank);

    template <detail::number I>
    void append(I number) noexcept {
        if (count_ < capacity) {
            values_[count_] = std::in_range<std::int64_t>(number) ? static_cast<std::int64_t>(number)
                                                                  : std::numeric_limits<std::int64_t>::min();
        }
        ++count_;
    }

    std::size_t count_ = 0;
    std::int64_t values_[capacity];  // only the first `count_` are ever read
};

}  // namespace tenon
