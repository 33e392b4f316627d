// tenon/py/python_error.hpp: the C++ exception that stands for a Python exception that is pending.
#pragma once

#include <exception>

namespace tenon::py {

/// Thrown when a Python exception is pending, by functions that cannot return a null: whatever carries C++
/// exceptions back to Python leaves the pending one as it is.
class python_error : public std::exception {
public:
    [[nodiscard]] const char* what() const noexcept override { return "a Python exception is pending"; }
};

}  // namespace tenon::py
