// tenon/py/python_error.hpp: the C++ exception that stands for a pending one of Python's.
#pragma once

#include <exception>
#include <optional>

#include <tenon/value/error.hpp>

namespace tenon::py {

/// Thrown when a Python exception is pending, by functions that cannot return a null: whatever carries C++
/// exceptions back to Python leaves the pending one as it is.
class python_error : public std::exception {
public:
    python_error() noexcept = default;
    /// The pending exception is this error's.
    explicit python_error(const tenon::error& e) noexcept : error_(e) {}

    [[nodiscard]] const char* what() const noexcept override { return "a Python exception is pending"; }
    /// For the binders, which know the arguments' names.
    [[nodiscard]] const std::optional<tenon::error>& error() const noexcept { return error_; }

private:
    std::optional<tenon::error> error_;
};

}  // namespace tenon::py
