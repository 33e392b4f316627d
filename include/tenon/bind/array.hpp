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
#include <tenon/bind/one_of.hpp>
#include <tenon/bind/place.hpp>
#include <tenon/bind/shape.hpp>
#include <tenon/bind/visit.hpp>
// What tenon/py.hpp has, but for the engine, which comes last of all.
#include <tenon/py/import.hpp>
#include <tenon/py/like.hpp>
#include <tenon/py/own.hpp>
#include <tenon/py/producer.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/py/traverse.hpp>
#include <tenon/tenon.hpp>

namespace tenon {

// --- properties -------------------------------------------------------------------------------------------

/// Row-major or column-major memory without gaps, or either of them; without one of these, any strides will
/// do.
struct c_contiguous {};
struct f_contiguous {};
struct any_contiguous {};

// Where the memory must be: see place.hpp. Without one of those: wherever plain code can read it (CPU,
// pinned, managed).

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
/// Beside `convert`: by whatever cast the library makes, which may drop a sign, a fraction, an imaginary
/// part.
struct lossy {};
/// A number of Python's is taken for an array without axes: an int for any number, if it is in range, a float
/// for a real or complex one. `empty_like` of it, without axes, becomes a number again.
struct numbers {};

namespace bind {

template <class P>
inline constexpr std::size_t alignment_of = 0;
template <std::size_t Bytes>
inline constexpr std::size_t alignment_of<aligned<Bytes>> = aligned<Bytes>::bytes;

template <class P, class... Among>
inline constexpr bool is_one_of = (std::same_as<P, Among> || ...);
template <class P>
inline constexpr bool is_order = is_one_of<P, c_contiguous, f_contiguous, any_contiguous>;
template <class P>
inline constexpr bool is_property =
    is_order<P> || is_place<P> || alignment_of<P> != 0 || is_one_of<P, convert, narrowing, lossy, numbers>;

/// What `array<T, Extents, Props...>` asks of a tensor.
template <class T, auto Extents, class... Props>
struct constraints {
    using shown = shown_as<T>;
    static_assert(!is_property<std::remove_cv_t<T>>,
                  "tenon::array: the element type comes first, and the rank or shape before properties: "
                  "array<const void, dynamic_rank, c_contiguous>");
    static_assert(
        std::is_void_v<shown> || element<T>,
        "tenon::array: the element type is not known to DLPack; specialise tenon::dtype_traits for it");
    static_assert(!std::same_as<std::remove_cv_t<T>, bool>,
                  "tenon::array<bool>: a C++ bool may hold nothing but 0 and 1; take tenon::bool8");
    static_assert(
        std::is_void_v<shown> || viewable<T> || std::same_as<std::remove_cv_t<T>, bool>,
        "tenon::array: the size of this type is not that of its elements in memory; take const void");
    static_assert(std::is_void_v<shown> || !viewable<T> || addressable<T>,
                  "tenon::array: elements of less than a byte may share bytes; take const void and a view "
                  "of it, or a type of whole bytes (__nv_fp4x2_e2m1)");
    static constexpr bool has_shape = requires { Extents.extents; };
    static_assert(has_shape || std::integral<decltype(Extents)>,
                  "tenon::array: the second argument is a rank or a tenon::shape<...>");
    static_assert(
        (is_property<Props> && ...),
        "tenon::array: not a property; there are c_contiguous, f_contiguous, any_contiguous, "
        "aligned<N>, convert, narrowing, lossy, numbers, any_device and a name for each device (cpu, cuda, "
        "...)");
    static_assert((0 + ... + int{is_order<Props>}) <= 1,
                  "tenon::array: c_contiguous, f_contiguous and any_contiguous contradict each other");
    static_assert((0 + ... + int{is_place<Props>}) <= 1, "tenon::array: state one device only");
    static_assert((0 + ... + int{alignment_of<Props> != 0}) <= 1, "tenon::array: state one alignment only");
    static_assert(
        std::is_const_v<T> || !is_one_of<convert, Props...>,
        "tenon::array: convert needs a const element type; what is written to a converted copy would "
        "be lost");
    static_assert(!std::is_void_v<T> || !is_one_of<convert, Props...> || (is_order<Props> || ...),
                  "tenon::array: convert needs an element type or an order to convert to");
    static_assert(is_one_of<convert, Props...> || !is_one_of<narrowing, Props...>,
                  "tenon::array: narrowing says how far convert may go; state both");
    static_assert(is_one_of<convert, Props...> || !is_one_of<lossy, Props...>,
                  "tenon::array: lossy says how far convert may go; state both");
    static_assert(!is_one_of<narrowing, Props...> || !is_one_of<lossy, Props...>,
                  "tenon::array: lossy goes further than narrowing; state one of them");
    static_assert(!std::is_void_v<T> || !(is_one_of<narrowing, Props...> || is_one_of<lossy, Props...>),
                  "tenon::array: narrowing and lossy are about element types; there is none to convert to");
    static_assert(!is_one_of<numbers, Props...> || (std::is_const_v<T> && !std::is_void_v<shown>),
                  "tenon::array: numbers needs a const element type; a number cannot be written to");
    static_assert(!is_one_of<numbers, Props...> || !((is_place<Props> && !std::same_as<Props, cpu>) || ...),
                  "tenon::array: a number is in host memory; leave cuda, rocm and any_device away");

    template <class P>
    static constexpr bool has = is_one_of<P, Props...>;

    static constexpr std::int32_t kind = (-1 + ... + (kind_of<Props> + 1));  // one is stated at most
    static constexpr bool on_host = !(is_place<Props> || ...) || tenon::device(kind, 0).is_host_accessible();
    static constexpr bool in_order = (is_order<Props> || ...);
    static constexpr conversions converting = has<lossy>       ? conversions::lossy
                                              : has<narrowing> ? conversions::narrowing
                                              : has<convert>   ? conversions::safe
                                                               : conversions::none;
    static constexpr bool takes_numbers = has<numbers>;

    static constexpr int rank = [] {
        if constexpr (has_shape)
            return Extents.rank;
        else
            return static_cast<int>(Extents);
    }();
    static_assert(rank >= dynamic_rank && rank <= max_rank, "tenon::array: no tensor has this many axes");
    static_assert(!takes_numbers || rank <= 0, "tenon::array: a number has no axes; leave the rank open");

    using window = std::conditional_t<on_host, view<shown, rank>, device_view<shown, rank>>;

    static constexpr std::span<const char* const> names = [] {
        std::span<const char* const> all;
        if constexpr (has_shape)
            if constexpr (Extents.has_names) all = Extents.names;
        return all;
    }();

    static constexpr request wanted = [] {
        request r;
        if constexpr (is_set<T>)
            r.types = T::dtypes;
        else if constexpr (!std::is_void_v<T>)
            r.type = dtype_of<T>;
        r.rank = rank;
        if constexpr (has_shape) r.shape = Extents.extents;
        r.space = on_host && !has<cpu> ? memory_space::host : memory_space::any;
        r.kind = kind;
        r.order = has<c_contiguous>     ? memory_order::c
                  : has<f_contiguous>   ? memory_order::f
                  : has<any_contiguous> ? memory_order::c_or_f
                                        : memory_order::any;
        r.writable = !std::is_const_v<T>;
        std::size_t alignment = 1;
        if constexpr (!std::is_void_v<shown> && on_host) alignment = alignof(T);
        ((alignment = alignment_of<Props> > alignment ? alignment_of<Props> : alignment), ...);
        r.alignment = static_cast<std::uint32_t>(alignment);
        return r;
    }();
};

}  // namespace bind

// --- arrays -----------------------------------------------------------------------------------------------

namespace bind {

[[nodiscard]] constexpr bool is_among(dtype type, std::span<const dtype> types) noexcept {
    for (const dtype one : types)
        if (one == type) return true;
    return false;
}
/// The element types that `strong` allows are among those of `weak`.
[[nodiscard]] constexpr bool implies_type(const request& strong, const request& weak) noexcept {
    if (weak.type) return strong.type == weak.type;
    if (weak.types.empty()) return true;
    if (strong.type) return is_among(*strong.type, weak.types);
    for (const dtype one : strong.types)
        if (!is_among(one, weak.types)) return false;
    return !strong.types.empty();
}
/// Whatever meets `strong` meets `weak`.
[[nodiscard]] constexpr bool implies(const request& strong, const request& weak) noexcept {
    if (!implies_type(strong, weak)) return false;
    if (weak.rank != dynamic_rank && strong.rank != weak.rank) return false;
    for (std::size_t i = 0; i < weak.shape.size(); ++i)
        if (weak.shape[i] != any && (strong.shape.empty() || strong.shape[i] != weak.shape[i])) return false;
    const bool is_in_order =
        weak.order == memory_order::c_or_f ? strong.order != memory_order::any : strong.order == weak.order;
    if (weak.order != memory_order::any && !is_in_order) return false;
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

/// The words for what `Stated` asks: one text for each of the types, as long as it is.
template <class Stated, conversions How = conversions::none, bool Numbers = false>
inline constexpr auto parameter_words = words<spell(Stated::wanted, How, Numbers, Stated::names).size>(
    spell(Stated::wanted, How, Numbers, Stated::names));
template <class Stated>
inline constexpr auto result_words =
    words<spell(as_result(Stated::wanted), conversions::none, Stated::takes_numbers, Stated::names).size>(
        spell(as_result(Stated::wanted), conversions::none, Stated::takes_numbers, Stated::names));
/// The type that signatures give a parameter, and a result: as long as it is.
template <class Stated>
inline constexpr auto parameter_annotation =
    words<annotate(Stated::wanted, Stated::converting, Stated::takes_numbers, Stated::names).size>(
        annotate(Stated::wanted, Stated::converting, Stated::takes_numbers, Stated::names));
template <class Stated>
inline constexpr auto result_annotation =
    annotated_result<result_words<Stated>.view().size()>(result_words<Stated>.view());

}  // namespace bind

/// An argument, or memory from `empty_like`, as a `view` of it on the host and a `device_view` of it
/// elsewhere. The parameter type states what the caller must pass:
///
///     array<const float, 2>                         two axes, float32; read-only memory will do
///     array<float, shape<any, 3>, c_contiguous>     rows of three, writable, without gaps
///     array<const void, dynamic_rank, any_device>   anything, anywhere
///     array<const one_of<float, double>, 1>         float32 or float64: `visit` says which
///
/// A parameter itself only borrows its memory, for the length of the call. Whatever is copied or moved from
/// it keeps the memory, and may be kept: as a member, in a container, on another thread. Copies share what
/// they show; they are made and dropped on any thread, with or without the GIL.
template <class T, auto Extents = dynamic_rank, class... Props>
class array : public bind::constraints<T, Extents, Props...>::window {
    using stated = bind::constraints<T, Extents, Props...>;
    using window = typename stated::window;

public:
    static constexpr request wanted = stated::wanted;
    /// The parameter in words, as error messages have it.
    static constexpr const auto& spelled =
        bind::parameter_words<stated, stated::converting, stated::takes_numbers>;
    /// The parameter, and a result of this type, as signatures have it.
    static constexpr const auto& annotation = bind::parameter_annotation<stated>;
    static constexpr const auto& annotation_of_result = bind::result_annotation<stated>;
    static constexpr bind::parameter_spec spec{wanted,        stated::converting,
                                               spelled.text,  bind::parameter_words<stated>.text,
                                               stated::names, stated::takes_numbers};
    static constexpr int rank = stated::rank;
    static_assert(spelled.view().size() < bind::phrase::capacity,
                  "tenon::array: this takes more words than there is room for; name fewer element types");

    /// Holds nothing and has no elements, as an array that was moved from.
    array() noexcept
        : array(bind::found{bind::no_elements(rank, wanted.type.value_or(tenon::dtype{})).address()}) {}
    array(const array& other) : array(other.share()) {}
    // NOLINTNEXTLINE(performance-noexcept-move-constructor): what is lent is kept, which takes memory
    array(array&& other) : array() {
        if (other.lender_ != nullptr && !other.lender_->is_result(this))
            *this = std::as_const(other);  // what moves it away may outlive the call
        else
            swap(other);
    }
    array& operator=(array other) noexcept {
        swap(other);
        return *this;
    }
    ~array() = default;

    /// Of an array that promises as much, or more: what `empty_like` gives is any array of its type and rank.
    template <class U, auto Others, class... Promises>
        requires(!std::is_same_v<array, array<U, Others, Promises...>> &&
                 bind::implies(array<U, Others, Promises...>::wanted,
                               bind::constraints<T, Extents, Props...>::wanted))
    array(const array<U, Others, Promises...>& other)  // NOLINT(google-explicit-constructor)
        : array(other.share()) {}
    /// For the binders: what the engine found.
    explicit array(bind::found&& f) noexcept
        : window(window::over(*f.ref)),
          ref_(*f.ref),
          source_(f.source),
          lender_(f.lender),
          memory_(std::move(f.keeps)) {}

    template <class U, class... More>
    array(U*, const axes&, More&&...) TENON_DELETED("return a numpy_array of tensor::own instead");

    /// It holds an array.
    [[nodiscard]] bool is_valid() const noexcept { return source_ != nullptr; }

    [[nodiscard]] tenon::dtype dtype() const noexcept { return ref_.dtype(); }
    [[nodiscard]] tenon::device device() const noexcept { return ref_.device(); }
    [[nodiscard]] std::int64_t nbytes() const noexcept { return ref_.nbytes(); }
    [[nodiscard]] bool is_read_only() const noexcept { return ref_.is_read_only(); }
    /// It stands for a number of Python's: see `numbers`.
    [[nodiscard]] bool is_number() const noexcept { return ref_.is_number(); }
    /// The stream to launch work on, a `cudaStream_t` on CUDA: the one the caller's library is working on.
    [[nodiscard]] void* stream() const noexcept { return ref_.stream(); }
    /// The window alone, without what the binder keeps.
    [[nodiscard]] const window& view() const noexcept { return *this; }
    /// The Python object that the array came from, or whose library allocated it. Borrowed.
    [[nodiscard]] PyObject* object() const noexcept { return source_; }
    /// For the binders: the array as one of its library, a new reference, or null with an exception set.
    [[nodiscard]] PyObject* to_python() const& noexcept {
        return bind::array_to_python(memory_, source_, lender_);
    }
    [[nodiscard]] PyObject* to_python() && noexcept {
        return bind::array_to_python(std::move(memory_), source_, lender_);
    }
    /// For `py::traverse`.
    [[nodiscard]] const bind::holder& memory() const noexcept { return memory_; }
    /// For `dispatch`, `dispatch_dtype` and whatever else takes any tensor.
    operator const tensor_ref&() const noexcept  // NOLINT(google-explicit-constructor)
        requires(!std::is_base_of_v<tensor_ref, window>)
    {
        return ref_;
    }

    /// All elements, side by side: row-major memory is promised by the type.
    [[nodiscard]] std::span<T> span() const noexcept
        requires(!std::is_void_v<typename stated::shown> && stated::on_host &&
                 stated::template has<c_contiguous>)
    {
        return {this->data(), static_cast<std::size_t>(this->size())};
    }
    /// As of any view: an error when the memory turns out to have gaps.
    [[nodiscard]] auto span() const noexcept
        requires(!std::is_void_v<typename stated::shown> && stated::on_host &&
                 !stated::template has<c_contiguous>)
    {
        return window::span();
    }
    void span() const TENON_DELETED("a span needs typed elements in memory that the host can read");
    /// All elements in the order they have in memory, which may be row-major or column-major: for what does
    /// not ask where an element belongs.
    [[nodiscard]] std::span<T> flat() const noexcept
        requires(!std::is_void_v<typename stated::shown> && stated::on_host && stated::in_order)
    {
        return {this->data(), static_cast<std::size_t>(this->size())};
    }
    void flat() const TENON_DELETED("memory that may have gaps is not flat: state any_contiguous");

    /// Calls `f` with the array as one of the element type it has, an `array<const float, ...>` say, and of
    /// all else it states: see `tenon::visit`.
    template <class F>
        requires bind::is_set<T>
    decltype(auto) visit(F&& f) const {
        return bind::visiting<std::remove_reference_t<F>, array>::run(f, *this);
    }
    template <class F>
    void visit(F&&) const TENON_DELETED("state the types, one_of<float, double>, or use dispatch_dtype");

private:
    template <class, auto, class...>
    friend class array;
    template <class, class...>
    friend struct bind::visiting;

    /// The same memory as an array of its element type: for `visit`, which has looked.
    template <class Typed>
    [[nodiscard]] Typed as_typed() const noexcept {
        return Typed(bind::found{&ref_, source_, 0, memory_, lender_});
    }

    /// What a copy shows, which keeps it.
    [[nodiscard]] bind::found share() const {
        return lender_ != nullptr ? bind::keep_lent(*lender_) : bind::found{&ref_, source_, 0, memory_};
    }
    void swap(array& other) noexcept {
        std::swap(static_cast<window&>(*this), static_cast<window&>(other));
        std::swap(ref_, other.ref_);
        std::swap(source_, other.source_);
        std::swap(lender_, other.lender_);
        std::swap(memory_, other.memory_);
    }

    tensor_ref ref_;
    PyObject* source_;
    bind::argument* lender_;  ///< while it is borrowed
    bind::holder memory_;     ///< else
};

namespace bind {

template <class>
inline constexpr bool is_array = false;
template <class T, auto Extents, class... Props>
inline constexpr bool is_array<array<T, Extents, Props...>> = true;

/// An array or a tensor as a result: a new reference, or null with an exception set.
template <class P, class T>
[[nodiscard]] PyObject* to_python(T&& value) noexcept {
    if constexpr (is_array<P>)
        return static_cast<std::conditional_t<std::is_same_v<P, std::remove_cvref_t<T>>, T&&, P>>(value)
            .to_python();
    else
        return tensor_to_python(std::forward<T>(value));
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
    if constexpr (!std::is_void_v<shown_as<element>>) type = dtype_of<element>;
    return made(allocate_like(x.object(), x, sizes, type, made::wanted));
}
}  // namespace bind

/// Calls `f` with the arrays, each that is of `one_of` several element types as an array of the one it has,
/// with all else its type says: `array<const float, 2, c_contiguous>`. For several arrays these are all the
/// combinations that `f` can be called with; a TypeError, thrown as `py::python_error`, names the types of
/// another. What `f` returns is of one type, or arrays that differ in element type: those become an array of
/// `one_of` these.
template <class F, class... X>
    requires((bind::is_array<X> && ...) && bind::are_open<X...>)
decltype(auto) visit(F&& f, const X&... x) {
    return bind::visiting<std::remove_reference_t<F>, X...>::run(f, x...);
}

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

namespace py {

/// An array that a class keeps.
template <class T, auto Extents, class... Props>
[[nodiscard]] int traverse(const array<T, Extents, Props...>& x, visitproc visit, void* arg) noexcept {
    return detail::traverse_held(x.memory().get(), visit, arg);
}

}  // namespace py
}  // namespace tenon
