// src/py/import/numpy.hpp: the rung that reads NumPy's public array struct, once the running NumPy is seen
// to have that layout.
#pragma once

#include "array_interface.hpp"

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

/// An element type that no tensor can have, and what to do instead.
struct inexpressible_type {
    int number;
    const char* problem;
    const char* advice;
};
inline constexpr const char* elements_are_text = "the elements are text";
inline constexpr const char* elements_are_times = "the elements are times";
inline constexpr const char* elements_are_long = "the elements are long doubles, which differ by machine";
TENON_PRIVATE inline constexpr inexpressible_type inexpressible_types[] = {
    {numpy_abi::object_type, "the elements are Python objects", "convert it first (a.astype('float64'))"},
    {numpy_abi::void_type, "the elements are structures, or bytes without a type",
     "hand over one field (a['name']), or the bytes (a.copy().view('uint8'))"},
    {numpy_abi::bytes_type, elements_are_text, "convert it to numbers first"},
    {numpy_abi::text_type, elements_are_text, "convert it to numbers first"},
    {numpy_abi::string_type, elements_are_text, "convert it to numbers first"},
    {numpy_abi::time_type, elements_are_times, "hand over their numbers (a.view('int64'))"},
    {numpy_abi::duration_type, elements_are_times, "hand over their numbers (a.view('int64'))"},
    {numpy_abi::long_double_type, elements_are_long, "convert it first (a.astype('float64'))"},
    {numpy_abi::complex_long_double_type, elements_are_long, "convert it first (a.astype('complex128'))"},
};

/// Why a descriptor that is neither has no DLPack type; nullopt for one we do not know, of which NumPy may
/// know more.
TENON_COLD [[nodiscard]] inline std::optional<error> inexpressible(const numpy_abi::descriptor* d) noexcept {
    if (d->byteorder == numpy_abi::swapped_order) return format_error("dtype", format_fault::byte_swapped);
    for (const inexpressible_type& row : inexpressible_types) {
        if (row.number != d->type_num) continue;
        if (row.problem == elements_are_long && sizeof(long double) == sizeof(double)) break;
        return refused("dtype", row.problem).with_advice(row.advice);
    }
    return std::nullopt;
}

/// Reads the struct of an array whose elements are of a type that is known, and keeps nothing. Runs no code
/// of others.
[[nodiscard]] inline outcome read(const numpy_abi::array* a, dtype type, acquired& out) noexcept {
    if (a->nd < 0 || a->nd > max_rank) return outcome::absent;
    const auto shift = static_cast<unsigned>(std::countr_zero(type.itemsize()));
    const std::uint64_t padded = type.is_subbyte() ? abi::flag::subbyte_padded : 0;
    std::int64_t steps = 0;
    const auto ok = out.admit_axes({numpy_abi::describe(a, type), numpy_abi::flags_of(a) | padded},
                                   numpy_abi::axes_of(a, shift, steps));
    if (!ok) return ok;
    if (numpy_abi::are_whole(steps, shift)) return outcome::taken;
    return check_steps(out.shape(), a->strides, type.itemsize());
}

/// Whether the struct of an array of two axes says what its array interface does.
[[nodiscard]] inline bool struct_agrees(PyObject* sample, PyObject* descr, interpreter& here) noexcept {
    const auto* a = reinterpret_cast<const numpy_abi::array*>(sample);
    // A pointer is followed only once it is seen to be what it should.
    if (reinterpret_cast<PyObject*>(a->descr) != descr || a->nd != 2) return false;
    const dtype type = numpy_abi::plain_type(a->descr).type;
    type_plan plan;
    plan.array_interface = attribute_place::anywhere;
    const import_options options;
    acquired shown, said;
    attempt asked{sample, plan, options, false, here, said};
    return type.bits != 0 && read(a, type, shown) == outcome::taken &&
           array_interface::take(asked) == outcome::taken && is_same_memory(shown, said) &&
           shown.is_read_only() == said.is_read_only();
}

/// Makes a few arrays (sliced, reversed, frozen, of every plain type) and compares struct and interface.
[[nodiscard]] inline bool layout_holds(PyObject* numpy, PyTypeObject* ndarray, interpreter& here) noexcept {
    static constexpr const char* program = R"(
samples = []
for letter in "?bBhHiIlLqQfdFDe":
    part = numpy.zeros((4, 3), letter)[1:, ::-2]
    frozen = part[:]
    frozen.flags.writeable = False
    samples += [(part, part.dtype), (frozen, frozen.dtype)]
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
        const ref pair = ref::borrow(PyList_GET_ITEM(samples.get(), i));
        if (!PyTuple_CheckExact(pair.get()) || PyTuple_GET_SIZE(pair.get()) != 2) return false;
        PyObject* const sample = PyTuple_GET_ITEM(pair.get(), 0);
        if (Py_TYPE(sample) != ndarray || !struct_agrees(sample, PyTuple_GET_ITEM(pair.get(), 1), here))
            return false;
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
        const bool holds = ndarray && layout_holds(numpy.get(), as_type(ndarray), here);
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
    dtype type = numpy_abi::plain_type(a->descr).type;
    if (type.bits == 0) {
        out.ran_code = true;
        const ref descr = ref::borrow(reinterpret_cast<PyObject*>(a->descr));
        const auto extension = extension_type(a->descr);
        if (reinterpret_cast<PyObject*>(a->descr) != descr.get()) return outcome::absent;
        if (!extension) {
            const auto reason = inexpressible(a->descr);
            return reason ? outcome(*reason) : outcome::absent;
        }
        type = *extension;
    }
    const outcome got = read(a, type, out);
    if (got == outcome::taken && out.owning) out.owner = detail::keep_object(obj, home);
    return got;
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
[[nodiscard]] inline bool still_shows(PyObject* obj, const tensor_ref& before, bool writable) noexcept {
    const auto* a = reinterpret_cast<const numpy_abi::array*>(obj);
    const dtype plain = numpy_abi::plain_type(a->descr).type;
    const auto type = plain.bits != 0 ? plain : numpy_abi::type_by_name(a->descr);
    acquired now;
    return type && read(a, *type, now) == outcome::taken && is_same_memory(now, before) &&
           !(writable && now.is_read_only());
}

}  // namespace tenon::py::numpy
