// tenon/detail/binders.hpp: what a binder is told of our types where the header that binds them was left out:
// it does not compile, and says which header that is. Nothing of the binders is included.
#pragma once

#include <tenon/detail/config.hpp>

namespace tenon {

template <class T>
class result;
class tensor;
class shared_tensor;
template <class T, auto Extents, class... Props>
class array;
namespace bind {
enum class library : unsigned char;
template <library Library, class T, auto Extents>
class library_array;
}  // namespace bind

// Never defined: their names are the message.
template <class>
struct include_tenon_bind_nanobind_hpp;
template <class>
struct include_tenon_bind_pybind11_hpp;

namespace detail {

template <class T>
inline constexpr bool is_bindable = false;
template <>
inline constexpr bool is_bindable<tensor> = true;
template <>
inline constexpr bool is_bindable<shared_tensor> = true;
template <>
inline constexpr bool is_bindable<result<tensor>> = true;
template <class T, auto Extents, class... Props>
inline constexpr bool is_bindable<array<T, Extents, Props...>> = true;
template <bind::library Library, class T, auto Extents>
inline constexpr bool is_bindable<bind::library_array<Library, T, Extents>> = true;

/// What functions take and return by one of our headers alone. The casters of these ask for this and more,
/// and so come before those below.
template <class T>
concept bindable = is_bindable<T>;

}  // namespace detail
}  // namespace tenon

// As the binders declare them, but for the default arguments, which they add.
namespace nanobind::detail {
template <typename T, typename SFINAE>
struct type_caster;
template <tenon::detail::bindable T>
struct type_caster<T, int> : tenon::include_tenon_bind_nanobind_hpp<T> {};
}  // namespace nanobind::detail

namespace pybind11 TENON_PRIVATE {  // as pybind11 has it
namespace detail {
template <typename type, typename SFINAE>
class type_caster;
template <tenon::detail::bindable T>
class type_caster<T, void> : public tenon::include_tenon_bind_pybind11_hpp<T> {};
}  // namespace detail
}  // namespace pybind11 TENON_PRIVATE
