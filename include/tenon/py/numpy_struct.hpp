// tenon/py/numpy_struct.hpp: NumPy's public array struct, and the quickest way to borrow an ordinary array.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <tenon/py/acquired.hpp>

namespace tenon::py::numpy_abi {

/// The head of NumPy's descriptor, the same in NumPy 1 and 2.
struct descriptor {
    PyObject_HEAD PyTypeObject* scalar_type;
    char kind;
    char letter;
    char byteorder;
    char unused;
    int type_num;
};

/// NumPy's array, the fields it has published since 1.0.
struct array {
    PyObject_HEAD char* data;
    int nd;
    Py_ssize_t* dimensions;
    Py_ssize_t* strides;
    PyObject* base;
    descriptor* descr;
    int flags;
};

inline constexpr int flag_writeable = 0x0400;
/// How NumPy marks elements in the other byte order; its own is '='.
inline constexpr char swapped_order = std::endian::native == std::endian::little ? '>' : '<';
inline constexpr unsigned plain_types = 24;

/// What a type number stands for; a zero `bits` marks those DLPack has no word for.
struct alignas(8) numbered_type {
    dtype type{0, 0, 0};
    std::uint8_t shift = 0;  ///< log2 of the item size: steps in bytes become elements without a division
};

/// NumPy's type numbers name C types.
TENON_PRIVATE inline constexpr std::array<numbered_type, plain_types> type_numbers = [] {
    std::array<numbered_type, plain_types> t{};
    const auto is = [&](std::size_t number, dtype type) {
        t[number] = {type, static_cast<std::uint8_t>(std::countr_zero(type.itemsize()))};
    };
    is(0, dtype_of<bool>);
    is(1, dtype_of<signed char>);
    is(2, dtype_of<unsigned char>);
    is(3, dtype_of<short>);
    is(4, dtype_of<unsigned short>);
    is(5, dtype_of<int>);
    is(6, dtype_of<unsigned int>);
    is(7, dtype_of<long>);
    is(8, dtype_of<unsigned long>);
    is(9, dtype_of<long long>);
    is(10, dtype_of<unsigned long long>);
    is(11, dtype_of<float>);
    is(12, dtype_of<double>);
    is(14, dtype{abi::type_code::complex, 64});
    is(15, dtype{abi::type_code::complex, 128});
    is(23, dtype{abi::type_code::float_, 16});
    return t;
}();

/// The element type of a descriptor; `bits` is zero when it is not a plain one in this machine's byte order.
[[nodiscard]] TENON_HOT inline numbered_type plain_type(const descriptor* d) noexcept {
    const auto number = static_cast<unsigned>(d->type_num);
    // NumPy marks the machine's own order '=' and one-byte types '|'.
    if (number >= plain_types || (d->byteorder != '=' && d->byteorder != '|')) [[unlikely]]
        return {};
    return type_numbers[number];
}

/// The tensor an array describes, less its axes.
[[nodiscard]] TENON_HOT inline abi::dl_tensor describe(const array* a, dtype type) noexcept {
    return {a->data, {abi::device_code::cpu, 0}, a->nd, type.to_abi(), nullptr, nullptr, 0};
}

/// Reads the axes; the steps, in bytes, leave their traces in `steps`.
[[nodiscard]] TENON_HOT inline auto axes_of(const array* a, unsigned shift, std::int64_t& steps) noexcept {
    return [=, &steps](std::size_t i) TENON_HOT_LAMBDA {
        const std::int64_t step = a->strides[i];
        const std::int64_t extent = a->dimensions[i];
        steps |= extent > 1 ? step : 0;
        return tenon::detail::raw_axis{extent, step >> shift};
    };
}

/// Whether all of them are whole elements.
[[nodiscard]] TENON_HOT inline bool are_whole(std::int64_t steps, unsigned shift) noexcept {
    return (steps & ((std::int64_t{1} << shift) - 1)) == 0;
}

[[nodiscard]] TENON_HOT inline std::uint64_t flags_of(const array* a) noexcept {
    return (a->flags & flag_writeable) != 0 ? 0 : abi::flag::read_only;
}

}  // namespace tenon::py::numpy_abi

namespace tenon::py::numpy {

/// NumPy's array type once its layout has been checked, else null.
inline constinit std::atomic<PyTypeObject*> known_ndarray TENON_PRIVATE{nullptr};

/// Borrows an ordinary array of a plain type; false for anything that needs a closer look. NumPy's array is
/// common and its struct so quick to read that even the plan of the type is left out.
TENON_HOT [[nodiscard]] inline bool borrow_quickly(PyObject* obj, acquired& out) noexcept {
    if (Py_TYPE(obj) != known_ndarray.load(std::memory_order_relaxed)) return false;
    const auto* a = reinterpret_cast<const numpy_abi::array*>(obj);
    const numpy_abi::numbered_type element = numpy_abi::plain_type(a->descr);
    if (element.type.bits == 0 || static_cast<unsigned>(a->nd) > static_cast<unsigned>(max_rank)) [[unlikely]]
        return false;
    std::int64_t steps = 0;
    const unsigned shift = element.shift;
    return tenon::detail::validator::is_ordinary_layout(
               {numpy_abi::describe(a, element.type), numpy_abi::flags_of(a)}, std::int64_t{1} << shift,
               out.storage, out, numpy_abi::axes_of(a, shift, steps)) &&
           numpy_abi::are_whole(steps, shift);
}

}  // namespace tenon::py::numpy
