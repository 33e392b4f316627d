// tenon/py/python_error.hpp: the C++ exception that stands for a pending one of Python's.
#pragma once

#include <optional>
#include <stdexcept>

#include <tenon/value/error.hpp>

namespace tenon::py {

/// Thrown when a Python exception is pending, by functions that cannot return a null. That one stays pending,
/// so that whatever carries C++ exceptions back to Python can leave it as it is: whoever catches this and
/// goes on calls `PyErr_Clear()` first.
class python_error : public std::runtime_error {
public:
    python_error() : std::runtime_error("a Python exception is pending") {}
    /// The pending exception is this error's, and what it says.
    explicit python_error(const tenon::error& e) : std::runtime_error(e.message()), error_(e) {}

    /// For the binders, which know the arguments' names.
    [[nodiscard]] const std::optional<tenon::error>& error() const noexcept { return error_; }

private:
    std::optional<tenon::error> error_;
};

}  // namespace tenon::py
