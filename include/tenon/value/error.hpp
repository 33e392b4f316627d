// tenon/value/error.hpp: why something was refused, as a small value that becomes a sentence only when read.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <tenon/value/device.hpp>

namespace tenon {

struct dtype;

/// How a failure is classed, and therefore which Python exception it becomes.
enum class errc : std::uint8_t {
    not_an_array,  ///< the object speaks no protocol: TypeError
    refused,       ///< well formed, but not expressible or not allowed here: BufferError
    malformed,     ///< the descriptor contradicts itself: ValueError (and BufferError)
    not_taken,     ///< of an element type that the function does not take: TypeError
    no_memory,     ///< an allocation failed: MemoryError
    mismatched,    ///< several that are well formed do not go together: ValueError
};

/// What was wrong. Trivial and allocation-free, so that it can be made on any path and room for one costs
/// nothing; all texts are static, and so are the `types`. `got` and `wanted` are only meaningful when
/// `detail` says so: with `types`, a dtype's bits and how many there are.
struct error {
    enum class detail_kind : std::uint8_t { none, got, got_wanted, got_hex, devices, dtypes, types };

    errc code;
    detail_kind detail;
    std::uint16_t which;  ///< of several tensors the one at fault, counted from 1; or 0
    std::int32_t axis;    ///< the axis at fault, or -1
    const char* field;    ///< the field at fault ("shape", "flags", "dtype", ...)
    const char* problem;  ///< what is wrong with it
    const char* advice;   ///< what the user can do, or null
    std::int64_t got;
    std::int64_t wanted;
    const dtype* types;  ///< the element types that are taken, or null
    /// Where the shape of the tensor at fault is stored (`t.shape().data()`), or null: to find it among
    /// several, and never to be read.
    const void* about;

    /// The whole sentence: which tensor, field, axis, problem, what came, what was expected, what to do.
    [[nodiscard]] TENON_API std::string message() const;

    [[nodiscard]] constexpr error of_tensor(std::size_t number) const noexcept {
        error e = *this;
        e.which = static_cast<std::uint16_t>(number);
        return e;
    }
    TENON_COLD [[nodiscard]] constexpr error at_axis(std::size_t number) const noexcept {
        error e = *this;
        e.axis = static_cast<std::int32_t>(number);
        return e;
    }
    TENON_COLD [[nodiscard]] constexpr error of_shape(const std::int64_t* storage) const noexcept {
        error e = *this;
        e.about = storage;
        return e;
    }
    TENON_COLD [[nodiscard]] constexpr error with_advice(const char* text) const noexcept {
        error e = *this;
        e.advice = text;
        return e;
    }
};

// Short spellings, so that a check reads as one line where it is made. Out of line: there are hundreds.
[[nodiscard]] TENON_API error malformed(const char* field, const char* problem) noexcept;
[[nodiscard]] TENON_API error malformed(const char* field, const char* problem, std::int64_t got) noexcept;
[[nodiscard]] TENON_API error refused(const char* field, const char* problem) noexcept;
[[nodiscard]] TENON_API error refused(const char* field, const char* problem, std::int64_t got) noexcept;
[[nodiscard]] TENON_API error refused(const char* field, const char* problem, std::int64_t got,
                                      std::int64_t wanted) noexcept;
[[nodiscard]] TENON_API error refused(const char* field, const char* problem, device got,
                                      device wanted) noexcept;
[[nodiscard]] TENON_API error refused(const char* field, const char* problem, dtype got,
                                      dtype wanted) noexcept;
[[nodiscard]] TENON_API error refused_bits(const char* field, const char* problem,
                                           std::uint64_t got) noexcept;
/// The element type is none of `count` others, which are static: `problem` is followed by their names.
[[nodiscard]] TENON_API error not_taken(const char* problem, const dtype* types, std::size_t count,
                                        dtype got) noexcept;
[[nodiscard]] TENON_API error out_of_memory(const char* field) noexcept;

template <class T>
class result;

/// Success, or an error: what a check returns. Success writes a single byte, so a passing check is free.
template <>
class [[nodiscard]] result<void> {
public:
    constexpr result() noexcept : none_(0), ok_(true) {}
    constexpr result(const tenon::error& e) noexcept : error_(e), ok_(false) {}

    [[nodiscard]] constexpr bool has_value() const noexcept { return ok_; }
    constexpr explicit operator bool() const noexcept { return ok_; }
    [[nodiscard]] constexpr const tenon::error& error() const noexcept {
        assert(!ok_);
        return error_;
    }

private:
    union {
        char none_;
        tenon::error error_;
    };
    bool ok_;
};

/// A value or the error that stood in its way. Reading the side that is not there is a programming error.
template <class T>
class [[nodiscard]] result : result<void> {
public:
    using value_type = T;

    result(T value) noexcept(std::is_nothrow_move_constructible_v<T>) : value_(std::move(value)) {}
    result(const tenon::error& e) noexcept : result<void>(e) {}
    /// A value made where it will stay: for classes that are costly to move.
    template <class... Args>
    explicit result(std::in_place_t, Args&&... args) : value_(std::in_place, std::forward<Args>(args)...) {}

    using result<void>::has_value, result<void>::operator bool, result<void>::error;

    /// Puts the error in the place of the value.
    void fail(const tenon::error& e) noexcept {
        static_cast<result<void>&>(*this) = e;  // first: it may lie in the value
        value_.reset();
    }

    [[nodiscard]] T& value() & noexcept {
        assert(has_value());
        return *value_;  // NOLINT(bugprone-unchecked-optional-access): whoever asks has looked
    }
    [[nodiscard]] const T& value() const& noexcept { return const_cast<result*>(this)->value(); }
    /// Itself, and not a reference: `for (float& x : view<float, 1>::from(t).value())` is good for the loop.
    [[nodiscard]] T value() && noexcept(std::is_nothrow_move_constructible_v<T>) {
        return std::move(value());
    }
    T& operator*() & noexcept { return value(); }
    const T& operator*() const& noexcept { return value(); }
    T operator*() && noexcept(std::is_nothrow_move_constructible_v<T>) { return std::move(value()); }
    T* operator->() noexcept { return &value(); }
    const T* operator->() const noexcept { return &value(); }

private:
    std::optional<T> value_;
};

}  // namespace tenon
