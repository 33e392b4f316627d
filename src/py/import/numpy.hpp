// src/py/import/numpy.hpp: the rung that reads NumPy's public array struct, once the running NumPy is seen
// to have that layout.
#pragma once

#include "../library/all.hpp"
#include "attempt.hpp"
#include "buffer_view.hpp"

namespace tenon::py::numpy {

namespace detail {

/// The letters of the plain types, for the check of the numbers.
TENON_PRIVATE inline constexpr std::string_view plain_letters = "?bBhHiIlLqQfdFDe";

/// ml_dtypes registers its types with NumPy; they are known by name. Sub-byte ones take a byte each.
TENON_COLD [[nodiscard]] inline std::optional<dtype> extension_type(const descriptor* d) noexcept {
    const auto named = numpy_abi::type_by_name(d);
    if (!named) return std::nullopt;
    const ref key = ref::take(PyUnicode_InternFromString("__module__"));
    const ref module = key ? ref::take(call::type_attr(d->scalar_type, key.get())) : ref();
    if (!module || !PyUnicode_Check(module.get()) ||
        PyUnicode_CompareWithASCIIString(module.get(), "ml_dtypes") != 0) {
        PyErr_Clear();
        return std::nullopt;
    }
    return named;
}

/// Why a descriptor that is neither has no DLPack type; nullopt for one we do not know, of which NumPy may
/// know more.
TENON_COLD [[nodiscard]] inline std::optional<error> inexpressible(const descriptor* d) noexcept {
    if (d->byteorder == numpy_abi::swapped_order) return format_error("dtype", format_fault::byte_swapped);
    switch (d->type_num) {
        case numpy_abi::object_type:
            return refused("dtype", "the elements are Python objects")
                .with_advice("convert it first (a.astype('float64'))");
        case numpy_abi::void_type:
            return refused("dtype", "the elements are structures, or bytes without a type")
                .with_advice("hand over one field (a['name']), or the bytes (a.copy().view('uint8'))");
        case numpy_abi::bytes_type:
        case numpy_abi::text_type:
        case numpy_abi::string_type:
            return refused("dtype", "the elements are text").with_advice("convert it to numbers first");
        case numpy_abi::time_type:
        case numpy_abi::duration_type:
            return refused("dtype", "the elements are times")
                .with_advice("hand over their numbers (a.view('int64'))");
        case numpy_abi::long_double_type:
        case numpy_abi::complex_long_double_type:
            if (sizeof(long double) == sizeof(double)) return std::nullopt;
            return refused("dtype", "the elements are long doubles, which differ by machine")
                .with_advice(d->type_num == numpy_abi::long_double_type
                                 ? "convert it first (a.astype('float64'))"
                                 : "convert it first (a.astype('complex128'))");
        default:
            return std::nullopt;
    }
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
    const ref interface = ref::take(call::attr(sample, "__array_interface__"));
    const ref descr = ref::take(call::attr(sample, "dtype"));
    const ref strides = ref::take(call::attr(sample, "strides"));
    if (!interface || !descr || !strides || !PyDict_Check(interface.get()) || !PyTuple_Check(strides.get()))
        return false;
    // The descriptor is followed only once it is seen to be the descriptor.
    if (reinterpret_cast<PyObject*>(a->descr) != descr.get()) return false;
    const ref data_item = ref::take(call::dict_item(interface.get(), "data"));
    const ref shape_item = ref::take(call::dict_item(interface.get(), "shape"));
    const ref typestr_item = ref::take(call::dict_item(interface.get(), "typestr"));
    PyObject* const data = data_item.get();
    PyObject* const shape = shape_item.get();
    PyObject* const typestr = typestr_item.get();
    const ref number = ref::take(call::attr(descr.get(), "num"));
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
    if (spelled == nullptr) return false;
    const parsed_format parsed = dtype_from_typestr(spelled);
    return reinterpret_cast<std::uintptr_t>(a->data) == address &&
           static_cast<std::uintptr_t>(a->descr->type_num) == type_num &&
           parsed.fault == format_fault::none && parsed.type == plain_type(a->descr).type &&
           ((a->flags & flag_writeable) != 0) == writeable;
}

/// Makes a few arrays (sliced, reversed, frozen, of every plain type) and compares struct and interface.
[[nodiscard]] inline bool layout_holds(PyObject* numpy, PyObject* ndarray) noexcept {
    if (!PyType_Check(ndarray) ||
        reinterpret_cast<PyTypeObject*>(ndarray)->tp_basicsize < Py_ssize_t{sizeof(array)})
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
        const ref whole = ref::take(call::method(numpy, "zeros", "(ii)s", 4, 3, type));
        if (!whole || Py_TYPE(whole.get()) != reinterpret_cast<PyTypeObject*>(ndarray)) return false;
        const ref part = ref::take(call::item(whole.get(), where.get()));
        if (!part || Py_TYPE(part.get()) != Py_TYPE(whole.get()) || !struct_agrees(part.get(), true))
            return false;
        const ref flags = ref::take(call::attr(part.get(), "flags"));
        if (!flags || call::set_attr(flags.get(), "writeable", Py_False) != 0 ||
            !struct_agrees(part.get(), false))
            return false;
    }
    const char* const swapped = tenon::detail::little_endian ? ">i4" : "<i4";
    const ref foreign_order = ref::take(call::method(numpy, "zeros", "is", 2, swapped));
    return foreign_order && plain_type(reinterpret_cast<array*>(foreign_order.get())->descr).type.bits == 0;
}

}  // namespace detail

namespace detail {

/// Looks at the running NumPy, once. NumPy is never imported for this: an object of its type exists only
/// where it has been.
[[nodiscard]] inline PyTypeObject* checked_ndarray(interpreter& here) noexcept {
    if (here.numpy_layout.load(std::memory_order_acquire) == 0) {
        const ref numpy = ref::take(call::imported_module("numpy"));
        ref ndarray = numpy ? ref::take(call::attr(numpy.get(), "ndarray")) : ref();
        const bool holds = ndarray && layout_holds(numpy.get(), ndarray.get());
        // An interrupt is not an answer: it is left standing, and the question open.
        if (!forget_answer()) return nullptr;
        // Kept for good: an object that calls itself NumPy may let go of it.
        call::drop(here.numpy_ndarray.exchange(ndarray.release()));
        here.numpy_layout.store(holds ? 1 : -1, std::memory_order_release);
    }
    if (here.numpy_layout.load(std::memory_order_acquire) != 1) return nullptr;
    return reinterpret_cast<PyTypeObject*>(here.numpy_ndarray.load(std::memory_order_relaxed));
}

/// The class named `name` along the MRO, or null; a look at names alone.
[[nodiscard]] inline PyTypeObject* ancestor_named(PyTypeObject* type, const char* name) noexcept {
    for (PyTypeObject* t = type; t != nullptr; t = t->tp_base)
        if (t->tp_name != nullptr && std::strcmp(t->tp_name, name) == 0) return t;
    return nullptr;
}

}  // namespace detail

/// Notes whether objects of the type have NumPy's struct, of the layout we know: arrays, and those of
/// subclasses that do not export themselves in a way of their own.
inline void probe(PyTypeObject* type, interpreter& here, type_plan& plan) noexcept {
    PyTypeObject* const base = detail::ancestor_named(type, "numpy.ndarray");
    if (base == nullptr || base != detail::checked_ndarray(here)) return;
    plan.masked = detail::ancestor_named(type, "MaskedArray") != nullptr;
    const ref own = ref::take(call::type_attr(type, here.dlpack));
    const ref inherited = ref::take(call::type_attr(base, here.dlpack));
    plan.numpy_struct = own.get() == inherited.get();
    // A static type is the same in every interpreter and never goes away: it needs no plan to be recognised.
    if (type == base && (type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0)
        known_ndarray.store(type, std::memory_order_relaxed);
}

/// A masked array has memory for what its mask hides: only one that hides nothing can be taken.
[[nodiscard]] inline outcome check_mask(PyObject* obj) noexcept {
    const ref mask = ref::take(call::attr(obj, "mask"));
    const ref any = mask ? ref::take(call::method(mask.get(), "any", nullptr)) : ref();
    const int hides = any ? call::is_true(any.get()) : -1;
    if (hides < 0) return outcome::raised;
    if (hides == 0) return outcome::taken;
    return refused("mask", "masked elements cannot be expressed").with_advice("call .filled() first");
}

/// Reads any array that has the struct, and keeps it if the import is an owning one. Absent for a dtype we do
/// not know (NumPy's own `__dlpack__` may).
[[nodiscard]] inline outcome take(PyObject* obj, interpreter* home, acquired& out) noexcept {
    const auto* a = reinterpret_cast<const detail::array*>(obj);
    std::uint64_t flags = detail::flags_of(a);
    detail::numbered_type element = detail::plain_type(a->descr);
    if (element.type.bits == 0) {
        out.ran_code = true;
        const ref descr = ref::borrow(reinterpret_cast<PyObject*>(a->descr));
        const auto extension = detail::extension_type(a->descr);
        flags = detail::flags_of(a);  // what was asked may have changed them, and the dtype
        if (reinterpret_cast<PyObject*>(a->descr) != descr.get()) return outcome::absent;
        if (!extension) {
            const auto reason = detail::inexpressible(a->descr);
            return reason ? outcome(*reason) : outcome::absent;
        }
        element = {*extension, static_cast<std::uint8_t>(std::countr_zero(extension->itemsize()))};
        if (extension->is_subbyte()) flags |= abi::flag::subbyte_padded;
    }
    if (a->nd < 0 || a->nd > max_rank) return outcome::absent;
    std::int64_t steps = 0;
    const auto ok =
        out.admit_axes(detail::describe(a, element.type), flags, detail::axes_of(a, element.shift, steps));
    if (!ok) return ok;
    if (!detail::are_whole(steps, element.shift) && !out.empty())
        return broken_step(out.shape(), a->strides, std::int64_t{1} << element.shift);
    if (out.owning) out.owner = py::detail::keep_object(obj, home);
    return outcome::taken;
}
[[nodiscard]] inline outcome take(attempt& a) noexcept {
    return a.plan.numpy_struct && a.host_will_do() ? take(a.obj, &a.here, a.out) : outcome::absent;
}

/// Whether the object has NumPy's struct, of the layout we know.
[[nodiscard]] inline bool is_array(PyObject* obj) noexcept {
    PyTypeObject* const type = Py_TYPE(obj);
    if (type == known_ndarray.load(std::memory_order_relaxed)) return true;
    const interpreter* const here = interpreter::current();
    if (here == nullptr) return (PyErr_Clear(), false);
    if (here->numpy_layout.load(std::memory_order_acquire) != 1) return false;
    auto* const base = reinterpret_cast<PyTypeObject*>(here->numpy_ndarray.load(std::memory_order_relaxed));
    return PyType_IsSubtype(type, base) != 0;
}

/// Whether an array, which `is_array`, still shows what was read of it before, and may still be written to if
/// that is asked. Runs no code of others.
[[nodiscard]] inline bool still_shows(PyObject* obj, const tensor_ref& read, bool writable) noexcept {
    const auto* a = reinterpret_cast<const detail::array*>(obj);
    if (a->nd != read.ndim() || (writable && detail::flags_of(a) != 0)) return false;
    for (std::size_t i = 0; i < read.shape().size(); ++i)
        if (a->dimensions[i] != read.shape(i)) return false;
    const detail::numbered_type element = detail::plain_type(a->descr);
    if (element.type.bits != 0 ? element.type != read.dtype()
                               : numpy_abi::type_by_name(a->descr) != read.dtype())
        return false;
    if (read.empty()) return true;  // whatever it points to is not read
    for (std::size_t i = 0; i < read.shape().size(); ++i)
        if (read.shape(i) > 1 && a->strides[i] != read.stride(i) * read.itemsize()) return false;
    return a->data == read.data();
}

}  // namespace tenon::py::numpy
