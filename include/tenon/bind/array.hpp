// tenon/bind/array.hpp: `tenon::array<T, Rank, Props...>`, the parameter type that states what a caller must
// pass, and a window on his memory; and with it everything but the binders.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include <tenon/bind/annotation.hpp>
#include <tenon/bind/argument.hpp>
// What tenon/py.hpp has, but for the engine, which comes last of all.
#include <tenon/py/import.hpp>
#include <tenon/py/like.hpp>
#include <tenon/py/producer.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/tenon.hpp>

namespace tenon {

// --- properties -------------------------------------------------------------------------------------------

/// Row-major or column-major memory without gaps; without either, any strides will do.
struct c_contiguous {};
struct f_contiguous {};

/// Where the memory must be. Without one of these: wherever plain code can read it (CPU, pinned, managed).
struct cpu {};
struct cuda {};
struct rocm {};
struct any_device {};

/// What the address of the first element must be a multiple of.
template <std::size_t Bytes>
struct aligned {
    static_assert(Bytes != 0 && (Bytes & (Bytes - 1)) == 0 && Bytes <= 4096,
                  "tenon::aligned: the alignment must be a power of two up to 4096");
    static constexpr std::size_t bytes = Bytes;
};

/// What does not fit in element type or order may be converted, by the caller's own library, into a copy that
/// has the same values: see `can_convert`.
struct convert {};
/// Beside `convert`: into one of fewer digits, too (float64 to float32, int64 to int32).
struct narrowing {};

namespace bind {

/// Extents, each a number or `any`.
template <std::int64_t... Extents>
struct shape_pattern {
    static_assert(((Extents >= any) && ...), "tenon::shape: an extent is a number or tenon::any");
    static constexpr int rank = static_cast<int>(sizeof...(Extents));
    static constexpr std::array<std::int64_t, sizeof...(Extents)> extents{Extents...};
    friend constexpr bool operator==(shape_pattern, shape_pattern) noexcept = default;
};

template <class P>
inline constexpr std::size_t alignment_of = 0;
template <std::size_t Bytes>
inline constexpr std::size_t alignment_of<aligned<Bytes>> = aligned<Bytes>::bytes;

template <class P, class... Among>
inline constexpr bool is_one_of = (std::same_as<P, Among> || ...);
template <class P>
inline constexpr bool is_order = is_one_of<P, c_contiguous, f_contiguous>;
template <class P>
inline constexpr bool is_place = is_one_of<P, cpu, cuda, rocm, any_device>;
template <class P>
inline constexpr bool is_property =
    is_order<P> || is_place<P> || alignment_of<P> != 0 || is_one_of<P, convert, narrowing>;

/// What `array<T, Extents, Props...>` asks of a tensor.
template <class T, auto Extents, class... Props>
struct constraints {
    static_assert(
        std::is_void_v<T> || element<T>,
        "tenon::array: the element type is not known to DLPack; specialise tenon::dtype_traits for it");
    static_assert(!std::same_as<std::remove_cv_t<T>, bool>,
                  "tenon::array<bool>: a C++ bool may hold nothing but 0 and 1; take tenon::bool8");
    static_assert(
        std::is_void_v<T> || viewable<T> || std::same_as<std::remove_cv_t<T>, bool>,
        "tenon::array: the size of this type is not that of its elements in memory; take const void");
    static_assert(std::is_void_v<T> || !viewable<T> || addressable<T>,
                  "tenon::array: elements of less than a byte may share bytes; take const void and a view "
                  "of it, or a type of whole bytes (__nv_fp4x2_e2m1)");
    static constexpr bool has_shape = requires { Extents.extents; };
    static_assert(has_shape || std::integral<decltype(Extents)>,
                  "tenon::array: the second argument is a rank or a tenon::shape<...>");
    static_assert((is_property<Props> && ...),
                  "tenon::array: not a property; there are c_contiguous, f_contiguous, cpu, cuda, rocm, "
                  "any_device, aligned<N>, convert and narrowing");
    static_assert((0 + ... + int{is_order<Props>}) <= 1,
                  "tenon::array: c_contiguous and f_contiguous contradict each other");
    static_assert((0 + ... + int{is_place<Props>}) <= 1, "tenon::array: state one device only");
    static_assert((0 + ... + int{alignment_of<Props> != 0}) <= 1, "tenon::array: state one alignment only");
    static_assert(
        std::is_const_v<T> || !is_one_of<convert, Props...>,
        "tenon::array: convert needs a const element type; what is written to a converted copy would "
        "be lost");
    static_assert(!std::is_void_v<T> || !is_one_of<convert, Props...>,
                  "tenon::array: convert needs an element type to convert to");
    static_assert(is_one_of<convert, Props...> || !is_one_of<narrowing, Props...>,
                  "tenon::array: narrowing says how far convert may go; state both");

    template <class P>
    static constexpr bool has = is_one_of<P, Props...>;

    static constexpr bool on_host = !(is_place<Props> || ...) || has<cpu>;
    static constexpr conversions converting = has<narrowing> ? conversions::narrowing
                                              : has<convert> ? conversions::safe
                                                             : conversions::none;

    static constexpr int rank = [] {
        if constexpr (has_shape)
            return Extents.rank;
        else
            return static_cast<int>(Extents);
    }();
    static_assert(rank >= dynamic_rank && rank <= max_rank, "tenon::array: no tensor has this many axes");

    using window = std::conditional_t<on_host, view<T, rank>, device_view<T, rank>>;

    static constexpr request wanted = [] {
        request r;
        if constexpr (!std::is_void_v<T>) r.type = dtype_of<T>;
        r.rank = rank;
        if constexpr (has_shape) r.shape = Extents.extents;
        r.space = on_host && !has<cpu> ? memory_space::host : memory_space::any;
        r.kind = has<cpu>    ? abi::device_code::cpu
                 : has<cuda> ? abi::device_code::cuda
                 : has<rocm> ? abi::device_code::rocm
                             : -1;
        r.order = has<c_contiguous>   ? memory_order::c
                  : has<f_contiguous> ? memory_order::f
                                      : memory_order::any;
        r.writable = !std::is_const_v<T>;
        std::size_t alignment = 1;
        if constexpr (!std::is_void_v<T> && on_host) alignment = alignof(T);
        ((alignment = alignment_of<Props> > alignment ? alignment_of<Props> : alignment), ...);
        r.alignment = static_cast<std::uint32_t>(alignment);
        return r;
    }();
};

}  // namespace bind

/// A shape for `array`: `shape<any, 3>` is any number of rows of three.
template <std::int64_t... Extents>
inline constexpr bind::shape_pattern<Extents...> shape{};

// --- arrays -----------------------------------------------------------------------------------------------

namespace bind {

/// Whatever meets `strong` meets `weak`.
[[nodiscard]] constexpr bool implies(const request& strong, const request& weak) noexcept {
    if (weak.type && strong.type != weak.type) return false;
    if (weak.rank != dynamic_rank && strong.rank != weak.rank) return false;
    for (std::size_t i = 0; i < weak.shape.size(); ++i)
        if (weak.shape[i] != any && (strong.shape.empty() || strong.shape[i] != weak.shape[i])) return false;
    if (weak.order != memory_order::any && strong.order != weak.order) return false;
    if (weak.kind != -1 && strong.kind != weak.kind) return false;
    if (weak.space == memory_space::host && !is_on_host(strong)) return false;
    return (strong.writable || !weak.writable) && strong.alignment >= weak.alignment;
}

/// What a result of such a type is in words: whoever gets one may do with it as he likes.
[[nodiscard]] constexpr request as_result(request r) noexcept {
    r.writable = false;
    r.order = memory_order::any;
    r.alignment = 1;
    return r;
}

/// The words for what `Stated` asks, and the type that signatures give it: one text for each, as long as it
/// is.
template <class Stated, conversions How = conversions::none>
inline constexpr auto parameter_words = words<spell(Stated::wanted, How).size>(spell(Stated::wanted, How));
template <class Stated>
inline constexpr auto parameter_annotation =
    words<annotate(Stated::wanted, Stated::converting).size>(annotate(Stated::wanted, Stated::converting));
template <class Stated>
inline constexpr auto result_annotation =
    words<annotate_result(as_result(Stated::wanted)).size>(annotate_result(as_result(Stated::wanted)));

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
class array : public bind::constraints<T, Extents, Props...>::window {
    using stated = bind::constraints<T, Extents, Props...>;
    using window = typename stated::window;

public:
    static constexpr request wanted = stated::wanted;
    /// The parameter in words, as error messages have it.
    static constexpr const auto& spelled = bind::parameter_words<stated, stated::converting>;
    /// The parameter, and a result of this type, as signatures have it.
    static constexpr const auto& annotation = bind::parameter_annotation<stated>;
    static constexpr const auto& annotation_of_result = bind::result_annotation<stated>;
    static constexpr bind::parameter_spec spec{wanted, stated::converting, spelled.text,
                                               bind::parameter_words<stated>.text};
    static constexpr int rank = stated::rank;

    /// Of an array that promises as much, or more: what `empty_like` gives is any array of its type and rank.
    template <class U, auto Others, class... Promises>
        requires(!std::is_same_v<array, array<U, Others, Promises...>> &&
                 bind::implies(array<U, Others, Promises...>::wanted,
                               bind::constraints<T, Extents, Props...>::wanted))
    array(const array<U, Others, Promises...>& other) noexcept  // NOLINT(google-explicit-constructor)
        : array(bind::found{&other.ref_, other.source_, 0, other.memory_}) {}
    /// For the binders: what the engine found.
    explicit array(bind::found&& f) noexcept
        : window(window::over(*f.ref)), ref_(*f.ref), source_(f.source), memory_(std::move(f.keeps)) {}

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
    /// For the binders: the array as one of its library, a new reference, or null with an exception set.
    [[nodiscard]] PyObject* to_python() && noexcept {
        return bind::array_to_python(std::move(memory_), source_);
    }
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
    template <class, auto, class...>
    friend class array;

    tensor_ref ref_;
    PyObject* source_;
    bind::holder memory_;
};

namespace bind {

template <class>
inline constexpr bool is_array = false;
template <class T, auto Extents, class... Props>
inline constexpr bool is_array<array<T, Extents, Props...>> = true;

/// An array or a tensor as a result: a new reference, or null with an exception set.
template <class P, class T>
[[nodiscard]] PyObject* to_python(T&& value) noexcept {
    if constexpr (is_array<P>) {
        return P(std::forward<T>(value)).to_python();
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

template <class U, int Rank, class T, auto Extents, class... Props>
[[nodiscard]] auto allocate_like(const array<T, Extents, Props...>& x, const axes& sizes) {
    using element = std::conditional_t<std::is_void_v<U>, std::remove_cv_t<T>, U>;
    using made = typename fresh<element, Rank, Props...>::type;
    tenon::dtype type = x.dtype();
    if constexpr (!std::is_void_v<element>) type = dtype_of<element>;
    return made(allocate_like(x.object(), x, sizes, type, made::wanted));
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
