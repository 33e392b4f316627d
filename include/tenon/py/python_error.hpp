// tenon/py/python_error.hpp: the C++ exception that stands for one of Python's.
#pragma once

#include <exception>
#include <optional>
#include <utility>

#include <tenon/value/error.hpp>

namespace tenon::py {

/// Thrown when a Python exception is pending, by functions that cannot return a null. It takes the exception
/// with it, as those of the binders do: who catches it and goes on has dealt with it, it may travel to
/// another thread, and whatever carries C++ exceptions back to Python raises the exception again. May be
/// copied and dropped on any thread, with or without the GIL.
class python_error : public std::exception {
public:
    /// Takes the pending exception of this thread, if there is one.
    TENON_API python_error() noexcept;
    /// The same, and it is this error's.
    TENON_API explicit python_error(const tenon::error& e) noexcept;
    TENON_API python_error(const python_error& other) noexcept;
    python_error& operator=(python_error other) noexcept {
        std::swap(held_, other.held_);
        error_ = other.error_;
        return *this;
    }
    TENON_API ~python_error() override;

    /// Makes the exception the pending one again, for a C function that returns null then:
    /// `catch (const python_error& e) { e.restore(); return nullptr; }`. One that is pending already stands.
    /// Needs the GIL.
    TENON_API void restore() const noexcept;

    [[nodiscard]] const char* what() const noexcept override { return "a Python exception was raised"; }
    /// For the binders, which know the arguments' names.
    [[nodiscard]] const std::optional<tenon::error>& error() const noexcept { return error_; }

private:
    struct held_exception* held_ = nullptr;  ///< the exception, which copies have in common
    std::optional<tenon::error> error_;
};

}  // namespace tenon::py
