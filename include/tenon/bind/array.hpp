// tenon/bind/array.hpp: an array as a parameter or a result of a bound function: a window on a caller's
// memory.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include <tenon/bind/phrase.hpp>
#include <tenon/bind/properties.hpp>
#include <tenon/detail/config.hpp>
#include <tenon/py/acquired.hpp>
#include <tenon/py/like.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/tensor/device_view.hpp>
#include <tenon/tensor/dispatch.hpp>
#include <tenon/tensor/tensor.hpp>
#include <tenon/tensor/view.hpp>
#include <tenon/value/axes.hpp>
#include "../../../src/py/library/current_stream.hpp"
#include "../../../src/py/runtime/attached.hpp"

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

/// Memory that an array keeps, and the object of the library it belongs to.
struct held {
    held(tensor&& m, keep_alive&& l) noexcept : memory(std::move(m)), like(std::move(l)) {}
    tensor memory;
    keep_alive like;
};

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
    static constexpr bind::conversions converting = stated::converting;
    static constexpr bool converts = converting != bind::conversions::none;
    /// The parameter in words, as it stands in signatures and error messages.
    static constexpr bind::phrase spelled = bind::spell(wanted, converting);
    /// What a result of this type is in words: whoever gets one may do with it as he likes.
    static constexpr bind::phrase spelled_result = bind::spell([] {
        request r = wanted;
        r.writable = false;
        r.order = memory_order::any;
        r.alignment = 1;
        return r;
    }());
    static constexpr int rank = stated::rank;

    /// Of an array that promises as much, or more: what `empty_like` gives is any array of its type and rank.
    template <class U, auto Others, class... Promises>
        requires(!std::is_same_v<array, array<U, Others, Promises...>> &&
                 bind::implies(array<U, Others, Promises...>::wanted,
                               bind::constraints<T, Extents, Props...>::wanted))
    array(const array<U, Others, Promises...>& other) noexcept  // NOLINT(google-explicit-constructor)
        : array(other.ref_, other.source_, other.held_) {}

    [[nodiscard]] tenon::dtype dtype() const noexcept { return ref_.dtype(); }
    [[nodiscard]] tenon::device device() const noexcept { return ref_.device(); }
    [[nodiscard]] std::int64_t nbytes() const noexcept { return ref_.nbytes(); }
    [[nodiscard]] bool is_read_only() const noexcept { return ref_.is_read_only(); }
    /// The stream to launch work on, a `cudaStream_t` on CUDA: the one the caller's library is working on.
    [[nodiscard]] void* stream() const noexcept { return ref_.stream(); }
    /// The window alone, without what the binder keeps.
    [[nodiscard]] const window& view() const noexcept { return *this; }
    /// The Python object the array was borrowed from, or whose library allocated it. Borrowed.
    [[nodiscard]] PyObject* object() const noexcept {
        return held_ != nullptr ? static_cast<PyObject*>(held_->like.subject()) : source_;
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
    friend struct bind::access;
    template <class, auto, class...>
    friend class array;
    array(const tensor_ref& checked, PyObject* source, std::shared_ptr<bind::held> keeps) noexcept
        : window(window::over(checked)), ref_(checked), source_(source), held_(std::move(keeps)) {}

    tensor_ref ref_;
    PyObject* source_;
    std::shared_ptr<bind::held> held_;
};

namespace bind {

template <class>
inline constexpr bool is_array = false;
template <class T, auto Extents, class... Props>
inline constexpr bool is_array<array<T, Extents, Props...>> = true;

/// How the binders make arrays and take them apart.
struct access {
    template <class Array>
    [[nodiscard]] static const tensor_ref& ref(const Array& a) noexcept {
        return a.ref_;
    }
    /// Over memory that the caller's call keeps alive.
    template <class Array>
    [[nodiscard]] static Array lend(const tensor_ref& checked, PyObject* source) noexcept {
        return Array(checked, source, nullptr);
    }
    /// Over memory of its own.
    template <class Array>
    [[nodiscard]] static Array keep(tensor&& memory, keep_alive&& like) {
        auto keeps = std::make_shared<held>(std::move(memory), std::move(like));
        const tensor_ref& checked = keeps->memory;
        return Array(checked, nullptr, std::move(keeps));
    }
    /// As an array of its library: what was borrowed as the very same object.
    template <class Array>
    [[nodiscard]] static PyObject* to_python(Array&& a) noexcept {
        if (a.held_ == nullptr) return py::ref::borrow(a.source_).release();
        const std::shared_ptr<held> keeps = std::move(a.held_);
        auto* const like = static_cast<PyObject*>(keeps->like.subject());
        if (keeps.use_count() == 1) return py::to_python(std::move(keeps->memory), like);
        // Copies of the array are still about: they and the result share the memory.
        const tensor_ref& t = keeps->memory;
        const tensor_info info =
            tensor_info::strided(t.data(), t.dtype(), axes(t.shape()), axes(t.strides()), t.device())
                .on_stream(t.stream());
        auto shared = tensor::own(std::shared_ptr<held>(keeps), t.is_subbyte_padded() ? info.padded() : info);
        if (shared && t.is_read_only()) shared->set_read_only();
        return py::to_python(std::move(shared), like);
    }
};

/// The array that `empty_like` gives: of the same place, row-major.
template <class U, int Rank, class... Place>
using fresh = array<U, Rank, c_contiguous, Place...>;

template <class U, int Rank, class... Props>
struct fresh_like;
template <class U, int Rank>
struct fresh_like<U, Rank> {
    using type = fresh<U, Rank>;
};
template <class U, int Rank, class P, class... Rest>
struct fresh_like<U, Rank, P, Rest...>
    : std::conditional_t<is_place<P>, std::type_identity<fresh<U, Rank, P>>, fresh_like<U, Rank, Rest...>> {};

template <class Array>
[[nodiscard]] Array allocate_like(PyObject* like, const tensor_ref& known, const axes& shape,
                                  element_type type) {
    if (py::attached_thread_state() == nullptr)
        throw std::runtime_error(std::string("tenon: empty_like") + py::needs_gil);
    auto made = py::empty_like(like, shape, type, &known);
    if (!made) throw py::python_error();
    const device where = known.device();
    // Where `like` has managed memory its library's allocator may give plain memory of the device, and serve.
    const bool is_there =
        made->device() == where || (where.type == abi::device_code::cuda_managed && made->device().is_cuda());
    const auto met = is_there ? check(*made, Array::wanted)
                              : result<void>(refused("device", "the library allocated elsewhere",
                                                     made->device().type, where.type));
    if (!met) {
        py::raise(met.error(), "tenon: empty_like: ");
        throw py::python_error();
    }
    py::interpreter* const here = py::interpreter::current();
    if (here == nullptr) throw py::python_error();
    made->set_stream(known.stream());
    return access::keep<Array>(std::move(*made), py::detail::keep_object(like, here));
}

}  // namespace bind

namespace bind {
/// The element type of a new array: `U`, or that of `x`.
template <class U, class T>
using fresh_element = std::conditional_t<std::is_void_v<U>, std::remove_cv_t<T>, U>;

template <class U, class Array>
[[nodiscard]] element_type fresh_dtype(const Array& x) noexcept {
    if constexpr (std::is_void_v<U>)
        return x.dtype();
    else
        return dtype_of<U>;
}
}  // namespace bind

/// A new, writable, uninitialised array where `x` is, in memory of its library: returned from the bound
/// function it is an array of that library. It has `x`'s element type unless another is given, and its shape.
/// Throws `py::python_error` when the library refuses, and `std::runtime_error` without the GIL.
template <class U = void, class T, auto Extents, class... Props>
[[nodiscard]] auto empty_like(const array<T, Extents, Props...>& x) {
    using element = bind::fresh_element<U, T>;
    using made = typename bind::fresh_like<element, array<T, Extents, Props...>::rank, Props...>::type;
    return bind::allocate_like<made>(x.object(), bind::access::ref(x), axes(x.shape()),
                                     bind::fresh_dtype<element>(x));
}
/// The same of another shape: `empty_like<float>(x, {rows, columns})`.
template <class U = void, class T, auto Extents, class... Props, std::integral I, std::size_t N>
[[nodiscard]] auto empty_like(const array<T, Extents, Props...>& x, const I (&sizes)[N]) {
    using element = bind::fresh_element<U, T>;
    using made = typename bind::fresh_like<element, static_cast<int>(N), Props...>::type;
    return bind::allocate_like<made>(x.object(), bind::access::ref(x), axes(sizes),
                                     bind::fresh_dtype<element>(x));
}
template <class U = void, class T, auto Extents, class... Props>
[[nodiscard]] auto empty_like(const array<T, Extents, Props...>& x, const axes& sizes) {
    using element = bind::fresh_element<U, T>;
    using made = typename bind::fresh_like<element, dynamic_rank, Props...>::type;
    return bind::allocate_like<made>(x.object(), bind::access::ref(x), sizes, bind::fresh_dtype<element>(x));
}

}  // namespace tenon
