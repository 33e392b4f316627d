// tenon/bind/array.hpp: an array as a parameter or a result of a bound function: a window on a caller's
// memory.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include <tenon/bind/argument.hpp>
#include <tenon/bind/phrase.hpp>
#include <tenon/bind/properties.hpp>
#include <tenon/tensor/dispatch.hpp>

namespace tenon {

namespace bind {
struct access;

/// Whatever meets `strong` meets `weak`.
[[nodiscard]] constexpr bool implies(const request& strong, const request& weak) noexcept {
    if (weak.type && strong.type != weak.type) return false;
    if (weak.rank != dynamic_rank && strong.rank != weak.rank) return false;
    for (std::size_t i = 0; i < weak.shape.size(); ++i)
        if (weak.shape[i] != any && (strong.shape.empty() || strong.shape[i] != weak.shape[i])) return false;
    if (weak.order != memory_order::any && strong.order != weak.order) return false;
    if (weak.kind != -1 && strong.kind != weak.kind) return false;
    const bool on_host = strong.space == memory_space::host || strong.kind == abi::device_code::cpu;
    if (weak.space == memory_space::host && !on_host) return false;
    return (strong.writable || !weak.writable) && strong.alignment >= weak.alignment;
}

/// What a result of such a type is in words: whoever gets one may do with it as he likes.
[[nodiscard]] constexpr request as_result(request r) noexcept {
    r.writable = false;
    r.order = memory_order::any;
    r.alignment = 1;
    return r;
}

/// The words for what `Stated` asks: one text for each of the types, as long as it is.
template <class Stated, conversions How = conversions::none>
inline constexpr auto parameter_words = words<spell(Stated::wanted, How).size>(spell(Stated::wanted, How));
template <class Stated>
inline constexpr auto result_words =
    words<spell(as_result(Stated::wanted)).size>(spell(as_result(Stated::wanted)));

template <class T, int Rank, bool OnHost>
using window = std::conditional_t<OnHost, view<T, Rank>, device_view<T, Rank>>;
}  // namespace bind

/// An argument that is borrowed for the length of the call, or memory from `empty_like`, as a `view` of it on
/// the host and a `device_view` of it elsewhere. The parameter type states what the caller must pass:
///
///     array<const float, 2>                         two axes, float32; read-only memory will do
///     array<float, shape<any, 3>, c_contiguous>     rows of three, writable, without gaps
///     array<const void, dynamic_rank, any_device>   anything, anywhere
///
/// A borrowed one must not be kept: take a `tensor` for that. Copies share what they show.
template <class T, auto Extents = dynamic_rank, class... Props>
class array : public bind::window<T, bind::constraints<T, Extents, Props...>::rank,
                                  bind::constraints<T, Extents, Props...>::on_host> {
    using stated = bind::constraints<T, Extents, Props...>;
    using window = bind::window<T, stated::rank, stated::on_host>;

public:
    static constexpr request wanted = stated::wanted;
    /// The parameter in words, as it stands in signatures and error messages; and a result of this type.
    static constexpr const auto& spelled = bind::parameter_words<stated, stated::converting>;
    static constexpr const auto& spelled_result = bind::result_words<stated>;
    static constexpr bind::parameter_spec spec{wanted, stated::converting, spelled.text,
                                               bind::parameter_words<stated>.text};
    static constexpr int rank = stated::rank;

    /// Of an array that promises as much, or more: what `empty_like` gives is any array of its type and rank.
    template <class U, auto Others, class... Promises>
        requires(!std::is_same_v<array, array<U, Others, Promises...>> &&
                 bind::implies(array<U, Others, Promises...>::wanted,
                               bind::constraints<T, Extents, Props...>::wanted))
    array(const array<U, Others, Promises...>& other) noexcept  // NOLINT(google-explicit-constructor)
        : array(other.ref_, other.source_, other.memory_) {}

    [[nodiscard]] tenon::dtype dtype() const noexcept { return ref_.dtype(); }
    [[nodiscard]] tenon::device device() const noexcept { return ref_.device(); }
    [[nodiscard]] std::int64_t nbytes() const noexcept { return ref_.nbytes(); }
    [[nodiscard]] bool is_read_only() const noexcept { return ref_.is_read_only(); }
    /// The stream to launch work on, a `cudaStream_t` on CUDA: the one the caller's library is working on.
    [[nodiscard]] void* stream() const noexcept { return ref_.stream(); }
    /// The window alone, without what the binder keeps.
    [[nodiscard]] const window& view() const noexcept { return *this; }
    /// The Python object the array was borrowed from, or whose library allocated it. Borrowed.
    [[nodiscard]] PyObject* object() const noexcept { return source_; }
    /// For `dispatch`, `dispatch_dtype` and whatever else takes any tensor.
    operator const tensor_ref&() const noexcept  // NOLINT(google-explicit-constructor)
        requires(!std::is_base_of_v<tensor_ref, window>)
    {
        return ref_;
    }

    /// All elements, side by side: row-major memory is promised by the type.
    [[nodiscard]] std::span<T> span() const noexcept
        requires(!std::is_void_v<T> && stated::on_host && stated::template has<c_contiguous>)
    {
        return {this->data(), static_cast<std::size_t>(this->size())};
    }
    /// As of any view: an error when the memory turns out to have gaps.
    [[nodiscard]] auto span() const noexcept
        requires(!std::is_void_v<T> && stated::on_host && !stated::template has<c_contiguous>)
    {
        return window::span();
    }
    void span() const TENON_DELETED("a span needs typed elements in memory that the host can read");

private:
    friend struct bind::access;
    template <class, auto, class...>
    friend class array;
    array(const tensor_ref& checked, PyObject* source, bind::holder memory) noexcept
        : window(window::over(checked)), ref_(checked), source_(source), memory_(std::move(memory)) {}

    tensor_ref ref_;
    PyObject* source_;
    bind::holder memory_;
};

namespace bind {

template <class>
inline constexpr bool is_array = false;
template <class T, auto Extents, class... Props>
inline constexpr bool is_array<array<T, Extents, Props...>> = true;

/// As an array of its library: what was borrowed, `source`, as the very same object. Takes the memory's
/// share.
[[nodiscard]] TENON_API PyObject* array_to_python(holder memory, PyObject* source) noexcept;
[[nodiscard]] TENON_API PyObject* tensor_to_python(tensor&& t) noexcept;
[[nodiscard]] TENON_API PyObject* tensor_to_python(result<tensor>&& t) noexcept;

/// How the binders make arrays and take them apart.
struct access {
    template <class Array>
    [[nodiscard]] static const tensor_ref& ref(const Array& a) noexcept {
        return a.ref_;
    }
    template <class Array>
    [[nodiscard]] static Array make(found&& f) noexcept {
        return Array(*f.ref, f.source, std::move(f.keeps));
    }
    template <class Array>
    [[nodiscard]] static PyObject* to_python(Array&& a) noexcept {
        return array_to_python(std::move(a.memory_), a.source_);
    }
};

/// An array or a tensor as a result: a new reference, or null with an exception set.
template <class P, class T>
[[nodiscard]] PyObject* to_python(T&& value) noexcept {
    if constexpr (is_array<P>) {
        return access::to_python(P(std::forward<T>(value)));
    } else {
        static_assert(!std::is_lvalue_reference_v<T>,
                      "a tensor that stays in C++ is returned by t.share(), another one by value");
        return tensor_to_python(std::forward<T>(value));
    }
}

/// The array that `empty_like` gives: of the same place, row-major.
template <class U, int Rank, class... Props>
struct fresh {
    using type = array<U, Rank, c_contiguous>;
};
template <class U, int Rank, class P, class... Rest>
struct fresh<U, Rank, P, Rest...>
    : std::conditional_t<is_place<P>, std::type_identity<array<U, Rank, c_contiguous, P>>,
                         fresh<U, Rank, Rest...>> {};

/// Memory like `known`, which is of `like`'s library, but of this shape and type. Throws `py::python_error`,
/// and `std::runtime_error` without the GIL.
[[nodiscard]] TENON_API found allocate_like(PyObject* like, const tensor_ref& known, const axes& shape,
                                            tenon::dtype type, const request& wanted);
template <class U, int Rank, class T, auto Extents, class... Props>
[[nodiscard]] auto allocate_like(const array<T, Extents, Props...>& x, const axes& sizes) {
    using element = std::conditional_t<std::is_void_v<U>, std::remove_cv_t<T>, U>;
    using made = typename fresh<element, Rank, Props...>::type;
    tenon::dtype type = x.dtype();
    if constexpr (!std::is_void_v<element>) type = dtype_of<element>;
    return access::make<made>(allocate_like(x.object(), access::ref(x), sizes, type, made::wanted));
}
}  // namespace bind

/// A new, writable, uninitialised array where `x` is, in memory of its library: returned from the bound
/// function it is an array of that library. It has `x`'s element type unless another is given, and its shape.
/// Throws `py::python_error` when the library refuses, and `std::runtime_error` without the GIL.
template <class U = void, class T, auto Extents, class... Props>
[[nodiscard]] auto empty_like(const array<T, Extents, Props...>& x) {
    return bind::allocate_like<U, array<T, Extents, Props...>::rank>(x, axes(x.shape()));
}
/// The same of another shape: `empty_like<float>(x, {rows, columns})`.
template <class U = void, class T, auto Extents, class... Props, std::integral I, std::size_t N>
[[nodiscard]] auto empty_like(const array<T, Extents, Props...>& x, const I (&sizes)[N]) {
    return bind::allocate_like<U, static_cast<int>(N)>(x, axes(sizes));
}
template <class U = void, class T, auto Extents, class... Props>
[[nodiscard]] auto empty_like(const array<T, Extents, Props...>& x, const axes& sizes) {
    return bind::allocate_like<U, dynamic_rank>(x, sizes);
}

}  // namespace tenon
