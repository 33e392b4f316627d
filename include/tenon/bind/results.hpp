// tenon/bind/results.hpp: results that name the library whose array Python gets, `numpy_array<float, 2>`, for
// functions that have no array of the caller's to go by; and an `out` that may be left out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include <tenon/bind/array.hpp>

namespace tenon {
namespace bind {

/// What a result can be an array of.
enum class library : unsigned char { numpy, torch, jax, cupy, tensorflow, paddle, memoryview };

/// A library in words: as `py::to_library` has it, and its type in signatures.
struct library_words {
    std::string_view name, type;
    bool states_elements = false;  ///< its type has the element type in brackets, by NumPy's name
    bool is_immutable = false;     ///< nobody writes to its arrays
    bool is_on_host = false;       ///< it has no other memory
};
/// In the order of the enumeration.
inline constexpr library_words words_of_library[] = {
    {.name = "numpy", .type = "numpy.typing.NDArray", .states_elements = true, .is_on_host = true},
    {.name = "torch", .type = "torch.Tensor"},
    {.name = "jax", .type = "jax.Array", .is_immutable = true},
    {.name = "cupy", .type = "cupy.ndarray"},
    {.name = "tensorflow", .type = "tensorflow.Tensor", .is_immutable = true},
    {.name = "paddle", .type = "paddle.Tensor"},
    {.name = "memoryview", .type = "memoryview", .is_on_host = true},
};
[[nodiscard]] constexpr const library_words& words_of(library l) noexcept {
    return words_of_library[static_cast<std::size_t>(l)];
}

/// The result in words: "typing.Annotated[numpy.typing.NDArray[numpy.float32], 'float32[*, *]']".
[[nodiscard]] constexpr phrase spell_result(const library_words& words, const request& r) noexcept {
    phrase out;
    out << "typing.Annotated[" << words.type;
    if (words.states_elements) out << "[" << spell_elements(r).view() << "]";
    return out << ", '" << spell(as_result(r)).view() << "']";
}
template <library Library, class Stated>
inline constexpr auto named_words = words<spell_result(words_of(Library), Stated::wanted).size>(
    spell_result(words_of(Library), Stated::wanted));

/// What a function says that it returns.
struct declared_result {
    request wanted;
    const char* words = "";    ///< "float32[*, *]"
    std::string_view library;  ///< by its name
    bool is_read_only = false;
};

/// As an array of that library, if it is what was declared: a new reference, or null with an exception set.
[[nodiscard]] TENON_API PyObject* library_to_python(result<tensor>&& made,
                                                    const declared_result& declared) noexcept;

/// A result that becomes an array of one library, whoever calls: made of a tensor, of what `tensor::own`
/// gives, or of a vector. Whether it is what the type says is looked at when it becomes Python's. `const`
/// elements leave as read-only.
template <library Library, class T, auto Extents>
class library_array {
    using stated = constraints<T, Extents>;
    static constexpr const library_words& named = words_of(Library);

public:
    // NOLINTBEGIN(google-explicit-constructor): what a function returns becomes one
    library_array(tensor t) noexcept : made_(std::move(t)) {}
    library_array(result<tensor> t) noexcept : made_(std::move(t)) {}
    template <tenon::detail::owning_container V>
        requires(std::is_same_v<typename V::value_type, std::remove_const_t<T>> &&
                 (stated::rank == 1 || stated::rank == dynamic_rank))
    library_array(V&& values) : made_(tensor::own(std::forward<V>(values))) {}
    // NOLINTEND(google-explicit-constructor)
    template <class U, class... More>
    library_array(U*, const axes&, More&&...) TENON_DELETED("who owns it? use tensor::own or py::own");

    static constexpr request wanted = [] {
        request r = as_result(stated::wanted);
        r.writable = !std::is_const_v<T> && !named.is_immutable;
        if (!named.is_on_host) r.space = memory_space::any;
        return r;
    }();
    static constexpr declared_result declared{wanted, result_words<stated>.text, named.name,
                                              std::is_const_v<T>};
    static constexpr std::string_view annotation = named_words<Library, stated>.view();

    /// For the binders: a new reference, or null with an exception set.
    [[nodiscard]] PyObject* to_python() && noexcept { return library_to_python(std::move(made_), declared); }

private:
    result<tensor> made_;
};

template <class>
inline constexpr bool is_library_array = false;
template <library Library, class T, auto Extents>
inline constexpr bool is_library_array<library_array<Library, T, Extents>> = true;
template <class R>
concept library_result = is_library_array<R>;

/// As a result: moved from, for a tensor has one owner.
template <class T>
[[nodiscard]] PyObject* named_to_python(T&& value) noexcept {
    static_assert(!std::is_lvalue_reference_v<T>,
                  "an array that names its library is returned by value; a class that keeps a tensor "
                  "returns t.share() as one");
    return std::forward<T>(value).to_python();
}

/// Throws `std::invalid_argument` unless the array that was given has the shape of the result.
TENON_API void check_out(const tensor_ref& given, const axes& wanted);
/// Raises TypeError, and throws, unless new memory of this type can be one of these.
TENON_API void check_taken(dtype type, std::span<const dtype> types);

}  // namespace bind

// Element type and shape as for `array`: `numpy_array<float, 2>`, `torch_tensor<float, shape<any, 3>>`.

template <class T, auto Extents = dynamic_rank>
using numpy_array = bind::library_array<bind::library::numpy, T, Extents>;
template <class T, auto Extents = dynamic_rank>
using torch_tensor = bind::library_array<bind::library::torch, T, Extents>;
template <class T, auto Extents = dynamic_rank>
using jax_array = bind::library_array<bind::library::jax, T, Extents>;
template <class T, auto Extents = dynamic_rank>
using cupy_array = bind::library_array<bind::library::cupy, T, Extents>;
template <class T, auto Extents = dynamic_rank>
using tensorflow_tensor = bind::library_array<bind::library::tensorflow, T, Extents>;
template <class T, auto Extents = dynamic_rank>
using paddle_tensor = bind::library_array<bind::library::paddle, T, Extents>;
/// A `memoryview` of Python's own.
template <class T, auto Extents = dynamic_rank>
using memory_view = bind::library_array<bind::library::memoryview, T, Extents>;

/// The array that the caller passed for the result, or a new one of `x`'s library, of this shape and `out`'s
/// element type (of a set of them `x`'s): `or_empty_like(out, x, {rows, columns})`. Returned from the
/// function, it is the very object that was passed. Throws `std::invalid_argument` when that has another
/// shape, and what `empty_like` throws.
template <class U, auto Out, class... OutProps, class T, auto Extents, class... Props>
[[nodiscard]] array<U, Out, OutProps...> or_empty_like(const std::optional<array<U, Out, OutProps...>>& out,
                                                       const array<T, Extents, Props...>& x,
                                                       const axes& sizes) {
    using result = array<U, Out, OutProps...>;
    static_assert(!std::is_const_v<U>,
                  "or_empty_like: out is written to: its element type must not be const");
    static_assert(result::wanted.order != memory_order::f, "or_empty_like: new memory is row-major");
    if (out) {
        bind::check_out(*out, sizes);
        return *out;
    }
    dtype type = x.dtype();
    if constexpr (bind::is_set<U>)
        bind::check_taken(type, result::wanted.types);
    else if constexpr (!std::is_void_v<U>)
        type = dtype_of<U>;
    return result(bind::allocate_like(x.object(), x, sizes, type, result::wanted));
}
/// The same of `x`'s own shape.
template <class U, auto Out, class... OutProps, class T, auto Extents, class... Props>
[[nodiscard]] array<U, Out, OutProps...> or_empty_like(const std::optional<array<U, Out, OutProps...>>& out,
                                                       const array<T, Extents, Props...>& x) {
    return or_empty_like(out, x, axes(x.shape()));
}

}  // namespace tenon
