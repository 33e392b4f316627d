// src/py/import/numpy.hpp: the rung that reads NumPy's public array struct, once the running NumPy is seen
// to have that layout.
#pragma once

#include "buffer.hpp"

namespace tenon::py::numpy {

/// ml_dtypes registers its types with NumPy; they are known by name. Sub-byte ones take a byte each.
TENON_COLD [[nodiscard]] inline std::optional<dtype> extension_type(const numpy_abi::descriptor* d) noexcept {
    const auto named = numpy_abi::type_by_name(d);
    if (!named) return std::nullopt;
    const ref module = ref::take(call::type_attr(d->scalar_type, "__module__"));
    if (!module || !PyUnicode_Check(module.get()) ||
        PyUnicode_CompareWithASCIIString(module.get(), "ml_dtypes") != 0) {
        PyErr_Clear();
        return std::nullopt;
    }
    return named;
}

/// Why a descriptor that is neither has no DLPack type; nullopt for one we do not know, of which NumPy may
/// know more.
TENON_COLD [[nodiscard]] inline std::optional<error> inexpressible(const numpy_abi::descriptor* d) noexcept {
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

/// Whether the struct of an array says what the array says of itself: (itself, dtype, address, type number,
/// shape, strides, typestr, whether it is writeable), of two axes.
[[nodiscard]] inline bool struct_agrees(PyObject* said, PyTypeObject* ndarray) noexcept {
    PyObject *sample = nullptr, *descr = nullptr;
    unsigned long long address = 0;
    int number = 0, writeable = 0;
    Py_ssize_t shape[2], strides[2];
    const char* typestr = nullptr;
    const bool read =
        PyTuple_CheckExact(said) && foreign_code([&] {
            return PyArg_ParseTuple(said, "OOKi(nn)(nn)sp", &sample, &descr, &address, &number, &shape[0],
                                    &shape[1], &strides[0], &strides[1], &typestr, &writeable);
        });
    if (!read || Py_TYPE(sample) != ndarray) return false;
    const auto* a = reinterpret_cast<const numpy_abi::array*>(sample);
    // A pointer is followed only once it is seen to be what it should.
    if (reinterpret_cast<PyObject*>(a->descr) != descr || a->nd != 2) return false;
    const parsed_format parsed = dtype_from_typestr(typestr);
    return reinterpret_cast<std::uintptr_t>(a->data) == address && a->descr->type_num == number &&
           std::ranges::equal(std::span(a->dimensions, 2), shape) &&
           std::ranges::equal(std::span(a->strides, 2), strides) && parsed.fault == format_fault::none &&
           parsed.type == numpy_abi::plain_type(a->descr).type &&
           ((a->flags & numpy_abi::flag_writeable) != 0) == (writeable != 0);
}

/// Makes a few arrays (sliced, reversed, frozen, of every plain type) and compares struct and interface.
[[nodiscard]] inline bool layout_holds(PyObject* numpy, PyTypeObject* ndarray) noexcept {
    static constexpr const char* program = R"(
samples = []
for letter in "?bBhHiIlLqQfdFDe":
    part = numpy.zeros((4, 3), letter)[1:, ::-2]
    frozen = part[:]
    frozen.flags.writeable = False
    for a, writeable in (part, True), (frozen, False):
        said = a.__array_interface__
        address, typestr = said["data"][0], said["typestr"]
        samples.append((a, a.dtype, address, a.dtype.num, said["shape"], a.strides, typestr, writeable))
swapped = numpy.zeros(2, numpy.dtype("i4").newbyteorder())
)";
    if (PyType_Check(ndarray) == 0 || ndarray->tp_basicsize < Py_ssize_t{sizeof(numpy_abi::array)})
        return false;
    const ref left = run_over(program, {{"numpy", numpy}});
    const ref samples = left ? ref::take(call::dict_item(left.get(), "samples")) : ref();
    const ref swapped = left ? ref::take(call::dict_item(left.get(), "swapped")) : ref();
    if (!samples || !PyList_CheckExact(samples.get()) || PyList_GET_SIZE(samples.get()) == 0 || !swapped ||
        Py_TYPE(swapped.get()) != ndarray)
        return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(samples.get()); ++i) {
        const ref said = ref::borrow(PyList_GET_ITEM(samples.get(), i));
        if (!struct_agrees(said.get(), ndarray)) return false;
    }
    const auto* other_order = reinterpret_cast<const numpy_abi::array*>(swapped.get());
    return numpy_abi::plain_type(other_order->descr).type.bits == 0;
}

/// NumPy's array type, if it has been seen to have the layout we know.
[[nodiscard]] inline PyTypeObject* known_base(const interpreter& here) noexcept {
    if (here.numpy_layout.load(std::memory_order_acquire) != 1) return nullptr;
    return reinterpret_cast<PyTypeObject*>(here.numpy_ndarray.load(std::memory_order_relaxed));
}

/// Looks at the running NumPy, once. NumPy is never imported for this: an object of its type exists only
/// where it has been.
[[nodiscard]] inline PyTypeObject* checked_ndarray(interpreter& here) noexcept {
    if (here.numpy_layout.load(std::memory_order_acquire) == 0) {
        const ref numpy = ref::take(call::imported_module("numpy"));
        ref ndarray = numpy ? ref::take(call::attr(numpy.get(), "ndarray")) : ref();
        const bool holds = ndarray && layout_holds(numpy.get(), as_type(ndarray));
        // An interrupt is not an answer: it is left standing, and the question open.
        if (!forget_answer()) return nullptr;
        // Kept for good: an object that calls itself NumPy may let go of it.
        call::drop(here.numpy_ndarray.exchange(ndarray.release()));
        here.numpy_layout.store(holds ? 1 : -1, std::memory_order_release);
    }
    return known_base(here);
}

/// Notes whether objects of the type have NumPy's struct, of the layout we know: arrays, and those of
/// subclasses that do not export themselves in a way of their own.
inline void probe(PyTypeObject* type, interpreter& here, type_plan& plan) noexcept {
    // Others do not have NumPy looked at.
    PyTypeObject* const base = has_class_named(type, "numpy.ndarray") ? checked_ndarray(here) : nullptr;
    if (base == nullptr || PyType_IsSubtype(type, base) == 0) return;
    plan.masked = has_class_named(type, "MaskedArray");
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
    const auto* a = reinterpret_cast<const numpy_abi::array*>(obj);
    std::uint64_t flags = numpy_abi::flags_of(a);
    numpy_abi::numbered_type element = numpy_abi::plain_type(a->descr);
    if (element.type.bits == 0) {
        out.ran_code = true;
        const ref descr = ref::borrow(reinterpret_cast<PyObject*>(a->descr));
        const auto extension = extension_type(a->descr);
        flags = numpy_abi::flags_of(a);  // what was asked may have changed them, and the dtype
        if (reinterpret_cast<PyObject*>(a->descr) != descr.get()) return outcome::absent;
        if (!extension) {
            const auto reason = inexpressible(a->descr);
            return reason ? outcome(*reason) : outcome::absent;
        }
        element = {*extension, static_cast<std::uint8_t>(std::countr_zero(extension->itemsize()))};
        if (extension->is_subbyte()) flags |= abi::flag::subbyte_padded;
    }
    if (a->nd < 0 || a->nd > max_rank) return outcome::absent;
    std::int64_t steps = 0;
    const auto ok = out.admit_axes({numpy_abi::describe(a, element.type), flags},
                                   numpy_abi::axes_of(a, element.shift, steps));
    if (!ok) return ok;
    if (!numpy_abi::are_whole(steps, element.shift)) {
        const auto whole = check_steps(out.shape(), a->strides, std::int64_t{1} << element.shift);
        if (!whole) return whole;
    }
    if (out.owning) out.owner = detail::keep_object(obj, home);
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
    PyTypeObject* const base = known_base(*here);
    return base != nullptr && PyType_IsSubtype(type, base) != 0;
}

/// Whether an array, which `is_array`, still shows what was read of it before, and may still be written to if
/// that is asked. Runs no code of others.
[[nodiscard]] inline bool still_shows(PyObject* obj, const tensor_ref& read, bool writable) noexcept {
    const auto* a = reinterpret_cast<const numpy_abi::array*>(obj);
    if (a->nd != read.ndim() || (writable && numpy_abi::flags_of(a) != 0)) return false;
    for (std::size_t i = 0; i < read.shape().size(); ++i)
        if (a->dimensions[i] != read.shape(i)) return false;
    const numpy_abi::numbered_type element = numpy_abi::plain_type(a->descr);
    if (element.type.bits != 0 ? element.type != read.dtype()
                               : numpy_abi::type_by_name(a->descr) != read.dtype())
        return false;
    if (read.empty()) return true;  // whatever it points to is not read
    for (std::size_t i = 0; i < read.shape().size(); ++i)
        if (read.shape(i) > 1 && a->strides[i] != read.stride(i) * read.itemsize()) return false;
    return a->data == read.data();
}

}  // namespace tenon::py::numpy
