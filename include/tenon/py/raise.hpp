// tenon/py/raise.hpp: the one place where a refusal becomes a Python exception.
//
//   errc::not_an_array -> TypeError
//   errc::refused      -> BufferError
//   errc::malformed    -> tenon.MalformedError, which is a ValueError and a BufferError: a descriptor that
//                         contradicts itself is a bad value, and consumers of DLPack expect BufferError
//   errc::not_taken    -> TypeError: an element type that a function does not take
//   errc::no_memory    -> MemoryError
//   errc::mismatched   -> ValueError
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <tenon/py/python.hpp>
#include <tenon/py/python_error.hpp>
#include <tenon/value/error.hpp>

namespace tenon::py {

/// Raises an exception of this class. Null, so that a function that returns an object can say `return
/// raise(...)`. Also on a thread that has let go of the GIL: the exception stands when it takes it back.
TENON_API std::nullptr_t raise(errc code, const std::string& message) noexcept;

/// Raises `e` as its exception, after `prefix`.
TENON_API std::nullptr_t raise(const error& e, std::string_view prefix = {}) noexcept;

/// Raises the C++ exception being handled, for the C function it must not leave, also on a thread that has
/// let go of the GIL. A Python exception that is pending already stands.
TENON_API void raise_caught() noexcept;

namespace detail {

/// Sees to it that the exception `e` stands for is pending on this thread: it may have been cleared since, or
/// be that of another thread, from which `e` came by a `std::future`. Needs the GIL.
TENON_API void raise_again(const python_error& e) noexcept;

}  // namespace detail

/// What `r` holds; an error is raised as its exception and thrown as `python_error`. For bound functions
/// that take arrays or tensors: `const auto w = or_raise(view<const float, 2>::from(t));`.
template <class T>
[[nodiscard]] TENON_NO_DANGLING T or_raise(result<T>&& r) {
    if (!r) [[unlikely]] {
        raise(r.error(), "tenon: ");
        throw python_error(r.error());
    }
    if constexpr (!std::is_void_v<T>) return std::move(*r);
}

}  // namespace tenon::py
