// tenon/py/python_error.hpp: the C++ exception that stands for a Python exception that is pending.
#pragma once

#include <exception>
#include <type_traits>
#include <utility>

#include <tenon/detail/config.hpp>
#include <tenon/value/error.hpp>

namespace tenon::py {

/// Thrown when a Python exception is pending, by functions that cannot return a null: whatever carries C++
/// exceptions back to Python leaves the pending one as it is.
class python_error : public std::exception {
public:
    [[nodiscard]] const char* what() const noexcept override { return "a Python exception is pending"; }
};

namespace detail {
/// Raises the error as its Python exception, and throws `python_error`.
[[noreturn]] TENON_API void throw_raised(const error& e);
}  // namespace detail

/// What `r` holds; an error is raised as its exception and thrown as `python_error`. For bound functions
/// that take arrays or tensors: `const auto w = or_raise(view<const float, 2>::from(t));`.
template <class T>
[[nodiscard]] TENON_NO_DANGLING T or_raise(result<T>&& r) {
    if (!r) [[unlikely]]
        detail::throw_raised(r.error());
    if constexpr (!std::is_void_v<T>) return std::move(*r);
}

}  // namespace tenon::py
