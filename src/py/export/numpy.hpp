// src/py/export/numpy.hpp: host memory leaves as a numpy.ndarray, made by NumPy's own C functions.
#pragma once

#include "../import/all.hpp"
#include "protocols.hpp"

namespace tenon::py::numpy {

/// NumPy's word for an element type: a new reference, or null with an exception set. Types that NumPy does
/// not have of its own are those of ml_dtypes, which takes a byte for each sub-byte element.
[[nodiscard]] inline PyObject* descriptor_for(dtype type, bool padded,
                                              const numpy_abi::functions& numpy) noexcept {
    if (const auto number = numpy_abi::number_of(type)) return numpy.descriptor_from_number(*number);
    const auto refuse = [](const error& e) { return raise(e, "tenon: "); };
    const dtype_entry* const known = find_dtype(type);
    if (known == nullptr || (type.is_subbyte() && !padded))
        return refuse(refused("dtype", "NumPy has no such element type", type.code));
    const ref module = ref::take(call::import_module("ml_dtypes"));
    // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): the texts of the table are literals
    const ref scalar = module ? ref::take(call::attr(module.get(), known->name.data())) : ref();
    if (!scalar) {
        if (PyErr_ExceptionMatches(PyExc_ImportError) == 0 &&
            PyErr_ExceptionMatches(PyExc_AttributeError) == 0)
            return nullptr;
        PyErr_Clear();
        return refuse(refused("dtype", "NumPy has no such element type of its own", type.code)
                          .with_advice("install ml_dtypes, which has bfloat16 and the smaller floats"));
    }
    const ref package = ref::take(call::import_module("numpy"));
    ref made = package ? ref::take(call::method(package.get(), "dtype", "O", scalar.get())) : ref();
    if (!made) return nullptr;
    // Whatever goes by the name of ml_dtypes: a stub's class, say, becomes NumPy's Python objects.
    const auto* const seen = numpy.as_descriptor(made.get());
    if (seen == nullptr || numpy_abi::type_by_name(seen) != type)
        return refuse(refused("dtype", "what ml_dtypes and NumPy make of its name is no such type", type.code)
                          .with_advice("look whether the module ml_dtypes is a stand-in"));
    return made.release();
}

/// An array over the memory of `t`, whose base the caller sets, or a `fresh` one like it, row-major; null
/// with an exception set.
[[nodiscard]] inline PyObject* new_array(const tensor_ref& t, const numpy_abi::functions& numpy,
                                         bool fresh = false) noexcept {
    if (!t.device().is_host_accessible())
        return raise(refused("device", "NumPy has only host memory", t.device().type)
                         .with_advice("make a copy on the CPU first"),
                     "tenon: ");
    PyObject* const descr = descriptor_for(t.dtype(), t.is_subbyte_padded(), numpy);
    if (descr == nullptr) return nullptr;
    const int flags = t.is_read_only() ? 0 : numpy_abi::flag_writeable;
    Py_ssize_t axes[2 * max_rank];
    const auto rank = static_cast<std::size_t>(t.ndim());
    for (std::size_t i = 0; i < rank; ++i) axes[i] = static_cast<Py_ssize_t>(t.shape(i));
    if (fresh) return numpy.new_array(descr, t.ndim(), axes, nullptr, nullptr, 0);
    // NumPy checks strides that it is given; it makes the row-major ones itself, in less time.
    if (t.is_c_contiguous() && !t.empty() && t.is_aligned_to(t.dtype().alignment()))
        return numpy.new_array(descr, t.ndim(), axes, nullptr, address_of(t),
                               flags | numpy_abi::flags_c_contiguous_aligned);
    for (std::size_t i = 0; i < rank; ++i) axes[rank + i] = byte_stride(t, i);
    return numpy.new_array(descr, t.ndim(), axes, axes + rank, address_of(t), flags);
}

/// An array over the memory of `t`, which `base` keeps alive; null with an exception set.
[[nodiscard]] inline PyObject* to_array(const tensor_ref& t, ref base, interpreter& here) noexcept {
    const auto numpy = numpy_abi::functions::find(here);
    if (!numpy) return nullptr;
    ref made = ref::take(new_array(t, *numpy));
    return made && numpy->set_base(made.get(), base.release()) == 0 ? made.release() : nullptr;
}

namespace detail {

/// What keeps the memory of an array alive, in a capsule that is the array's base.
using array_owner = tenon::detail::box<keep_alive>;
inline constexpr const char* owner_name = "tenon.owner";

inline void drop_owner(PyObject* capsule) noexcept {
    const error_guard keep;  // the owner's own code runs, and may not see what is pending
    array_owner::release(PyCapsule_GetPointer(capsule, owner_name), nullptr);
}

}  // namespace detail

/// An array that owns the tensor; null with an exception set on failure. `t` is taken in any case.
[[nodiscard]] inline PyObject* to_array(tensor&& t, interpreter& here) noexcept {
    auto* const owner = new (std::nothrow) detail::array_owner{{}, std::move(t.owner())};
    if (owner == nullptr) return PyErr_NoMemory();
    ref base = ref::take(PyCapsule_New(owner, detail::owner_name, &detail::drop_owner));
    if (base) return to_array(t, std::move(base), here);
    delete owner;
    return nullptr;
}

}  // namespace tenon::py::numpy
