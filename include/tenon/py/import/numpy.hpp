// tenon/py/import/numpy.hpp: the rung that reads NumPy's public array struct, once the running NumPy is seen to have that layout.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include <tenon/core/dtype_names.hpp>
#include <tenon/py/acquired.hpp>
#include <tenon/py/interpreter.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/py/type_plan.hpp>

namespace tenon::py::numpy {

namespace detail {

/// The head of NumPy's descriptor, the same in NumPy 1 and 2.
struct descriptor {
    PyObject_HEAD
    PyTypeObject* scalar_type;
    char kind;
    char letter;
    char byteorder;
    char unused;
    int type_num;
};

/// NumPy's array, the fields it has published since 1.0.
struct array {
    PyObject_HEAD
    char* data;
    int nd;
    Py_ssize_t* dimensions;
    Py_ssize_t* strides;
    PyObject* base;
    descriptor* descr;
    int flags;
};

inline constexpr int flag_writeable = 0x0400;
inline constexpr int plain_types = 24;
inline constexpr int first_user_type = 256;

/// NumPy's type numbers name C types; a zero `bits` marks those DLPack has no word for.
inline constexpr std::array<dtype, plain_types> type_numbers = [] {
    std::array<dtype, plain_types> t{};
    for (dtype& d : t) d = dtype{0, 0, 0};
    t[0] = dtype_of<bool>;
    t[1] = dtype_of<signed char>;
    t[2] = dtype_of<unsigned char>;
    t[3] = dtype_of<short>;
    t[4] = dtype_of<unsigned short>;
    t[5] = dtype_of<int>;
    t[6] = dtype_of<unsigned int>;
    t[7] = dtype_of<long>;
    t[8] = dtype_of<unsigned long>;
    t[9] = dtype_of<long long>;
    t[10] = dtype_of<unsigned long long>;
    t[11] = dtype_of<float>;
    t[12] = dtype_of<double>;
    t[14] = dtype_of<std::complex<float>>;
    t[15] = dtype_of<std::complex<double>>;
    t[23] = dtype{abi::type_code::float_, 16};
    return t;
}();
/// The letters of the plain types, for the check of the numbers.
inline constexpr std::string_view plain_letters = "?bBhHiIlLqQfdFDe";

[[nodiscard]] inline bool is_plain(const descriptor* d) noexcept {
    const bool known = d->type_num >= 0 && d->type_num < plain_types &&
                       type_numbers[static_cast<std::size_t>(d->type_num)].bits != 0;
    // NumPy marks the machine's own order '=' and one-byte types '|'.
    return known && (d->byteorder == '=' || d->byteorder == '|');
}

/// ml_dtypes registers its types with NumPy; they are known by name. Sub-byte ones take a byte each.
[[nodiscard]] inline std::optional<dtype> extension_type(const descriptor* d) noexcept {
    if (d->type_num < first_user_type || d->scalar_type == nullptr || d->scalar_type->tp_name == nullptr)
        return std::nullopt;
    if (d->byteorder != '=' && d->byteorder != '|') return std::nullopt;
    const ref key = ref::take(PyUnicode_InternFromString("__module__"));
    const ref module = key ? ref::take(lookup_on_type(d->scalar_type, key.get())) : ref();
    if (!module || !PyUnicode_Check(module.get()) || PyUnicode_CompareWithASCIIString(module.get(), "ml_dtypes") != 0) {
        PyErr_Clear();
        return std::nullopt;
    }
    std::string_view name = d->scalar_type->tp_name;
    if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos) name.remove_prefix(dot + 1);
    return dtype_from_name(name);
}

/// Reads one attribute as an address or a number; false when it is not one.
[[nodiscard]] inline bool read_number(PyObject* value, std::uintptr_t& out) noexcept {
    if (value == nullptr || !PyLong_Check(value)) return false;
    out = reinterpret_cast<std::uintptr_t>(PyLong_AsVoidPtr(value));
    return PyErr_Occurred() == nullptr;
}

/// True when the struct of `sample`, a NumPy array, says what its `__array_interface__` says.
[[nodiscard]] inline bool struct_agrees(PyObject* sample, bool writeable) noexcept {
    const auto* a = reinterpret_cast<const array*>(sample);
    const ref interface = ref::take(PyObject_GetAttrString(sample, "__array_interface__"));
    const ref descr = ref::take(PyObject_GetAttrString(sample, "dtype"));
    const ref strides = ref::take(PyObject_GetAttrString(sample, "strides"));
    if (!interface || !descr || !strides || !PyDict_Check(interface.get()) || !PyTuple_Check(strides.get()))
        return false;
    // The descriptor is followed only once it is seen to be the descriptor.
    if (reinterpret_cast<PyObject*>(a->descr) != descr.get()) return false;
    PyObject* const data = PyDict_GetItemString(interface.get(), "data");
    PyObject* const shape = PyDict_GetItemString(interface.get(), "shape");
    PyObject* const typestr = PyDict_GetItemString(interface.get(), "typestr");
    const ref number = ref::take(PyObject_GetAttrString(descr.get(), "num"));
    std::uintptr_t address = 0;
    std::uintptr_t type_num = 0;
    if (data == nullptr || !PyTuple_Check(data) || PyTuple_GET_SIZE(data) != 2 || shape == nullptr ||
        !PyTuple_Check(shape) || typestr == nullptr || !PyUnicode_Check(typestr) ||
        !read_number(PyTuple_GET_ITEM(data, 0), address) || !read_number(number.get(), type_num))
        return false;
    if (a->nd != PyTuple_GET_SIZE(shape) || a->nd != PyTuple_GET_SIZE(strides.get())) return false;
    for (Py_ssize_t i = 0; i < a->nd; ++i) {
        if (a->dimensions[i] != PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i)) ||
            a->strides[i] != PyLong_AsSsize_t(PyTuple_GET_ITEM(strides.get(), i)))
            return false;
    }
    const char* const spelled = PyUnicode_AsUTF8(typestr);
    if (spelled == nullptr || !is_plain(a->descr)) return false;
    const parsed_format parsed = dtype_from_typestr(spelled);
    return reinterpret_cast<std::uintptr_t>(a->data) == address &&
           static_cast<std::uintptr_t>(a->descr->type_num) == type_num && parsed.fault == format_fault::none &&
           parsed.type == type_numbers[static_cast<std::size_t>(a->descr->type_num)] &&
           ((a->flags & flag_writeable) != 0) == writeable;
}

/// Makes a few arrays (sliced, reversed, frozen, of every plain type) and compares struct and interface.
[[nodiscard]] inline bool layout_holds(PyObject* numpy, PyObject* ndarray) noexcept {
    if (!PyType_Check(ndarray) || reinterpret_cast<PyTypeObject*>(ndarray)->tp_basicsize < Py_ssize_t{sizeof(array)})
        return false;
    const ref one = ref::take(PyLong_FromLong(1));
    const ref back = ref::take(PyLong_FromLong(-2));
    if (!one || !back) return false;
    const ref rows = ref::take(PySlice_New(one.get(), nullptr, nullptr));
    const ref columns = ref::take(PySlice_New(nullptr, nullptr, back.get()));
    const ref where = rows && columns ? ref::take(PyTuple_Pack(2, rows.get(), columns.get())) : ref();
    if (!where) return false;
    for (const char letter : plain_letters) {
        const char type[] = {letter, '\0'};
        const ref whole = ref::take(PyObject_CallMethod(numpy, "zeros", "(ii)s", 4, 3, type));
        if (!whole || Py_TYPE(whole.get()) != reinterpret_cast<PyTypeObject*>(ndarray)) return false;
        const ref part = ref::take(PyObject_GetItem(whole.get(), where.get()));
        if (!part || Py_TYPE(part.get()) != Py_TYPE(whole.get()) || !struct_agrees(part.get(), true)) return false;
        const ref flags = ref::take(PyObject_GetAttrString(part.get(), "flags"));
        if (!flags || PyObject_SetAttrString(flags.get(), "writeable", Py_False) != 0 ||
            !struct_agrees(part.get(), false))
            return false;
    }
    const char* const swapped = tenon::detail::little_endian ? ">i4" : "<i4";
    const ref foreign_order = ref::take(PyObject_CallMethod(numpy, "zeros", "is", 2, swapped));
    return foreign_order && !is_plain(reinterpret_cast<array*>(foreign_order.get())->descr);
}

}  // namespace detail

/// Notes whether the type is NumPy's array itself with the layout we know. NumPy is never imported for this:
/// an object of its type exists only where it has been.
inline void probe(PyTypeObject* type, interpreter& here, type_plan& plan) noexcept {
    if (type->tp_name == nullptr || std::strcmp(type->tp_name, "numpy.ndarray") != 0) return;
    if (here.numpy_layout == 0) {
        here.numpy_layout = -1;
        PyObject* const modules = PyImport_GetModuleDict();
        const ref numpy = ref::borrow(modules != nullptr ? PyDict_GetItemString(modules, "numpy") : nullptr);
        const ref ndarray = numpy ? ref::take(PyObject_GetAttrString(numpy.get(), "ndarray")) : ref();
        if (ndarray && detail::layout_holds(numpy.get(), ndarray.get())) {
            here.numpy_layout = 1;
            here.numpy_ndarray = ndarray.get();  // a static type: it never goes away
        }
        PyErr_Clear();
    }
    plan.numpy_struct = here.numpy_layout == 1 && reinterpret_cast<PyObject*>(type) == here.numpy_ndarray;
}

/// Reads the array; the caller has seen that `plan.numpy_struct` holds. Absent for a dtype that is not plain
/// (NumPy's own `__dlpack__` then gives the reason).
[[nodiscard]] inline rung_result take(PyObject* obj, import_policy policy, acquired& out, error& why) noexcept {
    const auto* a = reinterpret_cast<const detail::array*>(obj);
    dtype type;
    std::uint64_t flags = (a->flags & detail::flag_writeable) != 0 ? 0 : abi::flag::read_only;
    if (detail::is_plain(a->descr)) [[likely]] {
        type = detail::type_numbers[static_cast<std::size_t>(a->descr->type_num)];
    } else {
        const auto extension = detail::extension_type(a->descr);
        if (!extension) return rung_result::absent;
        type = *extension;
        if (type.is_subbyte()) flags |= abi::flag::subbyte_padded;
    }
    if (a->nd < 0 || a->nd > max_rank) [[unlikely]]
        return rung_result::absent;
    // All of these item sizes are powers of two: strides in bytes become elements by a shift.
    const auto item = static_cast<std::int64_t>(type.itemsize());
    const int shift = std::countr_zero(static_cast<std::uint32_t>(item));
    const auto n = static_cast<std::size_t>(a->nd);
    for (std::size_t i = 0; i < n; ++i) {
        out.storage[i] = a->dimensions[i];
        if ((a->strides[i] & (item - 1)) != 0 && a->dimensions[i] > 1) [[unlikely]] {
            why = refused("strides", "the step in bytes is not a multiple of the element size", a->strides[i], item)
                      .at_axis(static_cast<std::int32_t>(i))
                      .with_advice("make a contiguous copy");
            return rung_result::refused;
        }
        out.storage[n + i] = a->strides[i] >> shift;
    }
    const abi::dl_tensor t{a->data, {abi::device_code::cpu, 0}, a->nd, type.to_abi(), nullptr, nullptr, 0};
    if (auto ok = out.admit_stored(t, flags, {0, 0}, policy); !ok) [[unlikely]] {
        why = ok.error();
        return rung_result::refused;
    }
    return rung_result::taken;
}

}  // namespace tenon::py::numpy
