// src/py/export/like.cpp: a tensor becomes an array of the library that another object comes from.
#include "like.hpp"

namespace tenon::py {

namespace detail {

/// The array `t` came from, borrowed, if it still shows exactly the same: then there is nothing to make. Null
/// with or without an exception.
[[nodiscard]] inline PyObject* same_array(const tensor& t, const array_maker& plan) noexcept {
    PyObject* const owner = array_kept_by(t.owner());
    if (owner == nullptr || Py_TYPE(owner) != plan.type) return nullptr;
    // NumPy has two types of the same integers, where two of C's have one size.
    if (plan.numpy_struct &&
        reinterpret_cast<const numpy_abi::array*>(owner)->descr->type_num != numpy_abi::number_of(t.dtype()))
        return nullptr;
    bool same = false;
    void* stream = nullptr;
    const bool asked = borrow(owner, {}, [&](const tensor_ref& now) {
        stream = now.stream();
        same = now.data() == t.data() && now.dtype() == t.dtype() && now.device() == t.device() &&
               now.is_read_only() == t.is_read_only() && is_same(now.shape(), t.shape()) &&
               is_same(now.strides(), t.strides());
    });
    if (!asked) (void)forget_answer();
    // Its library goes on working on its own stream.
    if (same && stream != t.stream() &&
        !succeeded(without_gil([&] { return gpu::order(t.device(), t.stream(), stream); })))
        return nullptr;
    return same ? owner : nullptr;
}

/// What the library cannot compute with, and would share all the same, it is not given: TensorFlow ends the
/// process at the first sum over memory off 64 bytes (a `std::vector`, say), PyTorch at complex numbers
/// off 16. It is a copy, where nobody can tell because the arrays are immutable, and a refusal else. False
/// with an exception set.
[[nodiscard]] inline bool align_for(tensor& t, const array_maker& plan) noexcept try {
    if (plan.can_use(t.data(), t.dtype(), t.device()) || t.empty()) [[likely]]
        return true;
    const library_row& library = *plan.library;
    if (!library.immutable) {
        raise(errc::refused, sentence({"tenon: ", library.name,
                                       " does not take this tensor: its complex numbers are not aligned to ",
                                       library.alignment_of_complex128, " bytes, as ", library.name,
                                       " reads them; make a copy of it"}));
        return false;
    }
    if (library.from_capsule && !t.is_c_contiguous()) return true;  // it refuses that itself
    std::optional<tensor> copied;
    if (t.device().is_host_accessible())
        copied = copy_released(t);
    else if (t.device().has_streams())
        copied = copied_on_device(t, t.owner());
    else
        return true;  // nothing it takes
    if (!copied) return false;
    t = std::move(*copied);
    return true;
} catch (...) {
    raise_caught();
    return false;
}

/// Hands a producer object, or a legacy capsule, to the library's function.
[[nodiscard]] inline PyObject* make_by_function(tensor&& t, const array_maker& plan) noexcept {
    const bool of_capsule = plan.maker.kind == maker_kind::of_capsule;
    const nesting_level level;
    if (!level || !align_for(t, plan)) return nullptr;
    // A bare capsule is taken without a word about streams.
    if (of_capsule && t.device().has_streams() &&
        !succeeded(without_gil([&] { return gpu::finish_device(t.device()); })))
        return nullptr;
    if (plan.immutable) t.allow_legacy();  // its library never writes
    const ref given =
        ref::take(of_capsule ? to_capsule(std::move(t), capsule_kind::legacy) : to_python(std::move(t)));
    if (!given) return nullptr;
    if (plan.maker.kind == maker_kind::type_method)
        return call::method(reinterpret_cast<PyObject*>(plan.type), "from_dlpack", "O", given.get());
    return call::one_argument(plan.maker.from, given.get());
}

/// What the maker makes of the tensor, which is taken on success, and by the library's functions in any case.
[[nodiscard]] inline PyObject* make_array(tensor& t, const array_maker& plan, interpreter& here) noexcept {
    const maker_kind kind = plan.maker.kind;
    const bool is_ours =
        plan.type != nullptr && reinterpret_cast<PyObject*>(plan.type) == here.package_type.load();
    // Who passed bytes, say, named no library: what NumPy cannot hold need not be refused.
    const bool is_elsewhere = kind == maker_kind::numpy && plan.type != nullptr && !plan.numpy_struct &&
                              !t.device().is_host_accessible();
    if (kind == maker_kind::unresolved || kind == maker_kind::none || is_ours || is_elsewhere)
        return to_python(std::move(t));
    if (kind == maker_kind::exchange_table) {
        if (!align_for(t, plan)) return nullptr;
        if (t.requires_grad() && plan.genuine_table && !warn_of_gradient(1)) return nullptr;
        return make_by_table(std::move(t), plan.table);
    }
    if (PyObject* const same = same_array(t, plan)) return ref::borrow(same).release();
    if (PyErr_Occurred() != nullptr) return nullptr;
    if (kind != maker_kind::numpy) return make_by_function(std::move(t), plan);
    return finish_device_work(t.device()) ? numpy::to_array(std::move(t), here) : nullptr;
}

}  // namespace detail

TENON_INLINE PyObject* to_python(tensor&& t, PyObject* like) noexcept {
    const detail::taken taken(t);
    interpreter* const here = interpreter::current();
    if (here == nullptr || detail::refuse_nothing(t)) return nullptr;
    const auto plan = detail::maker_of(like, *here);
    return plan ? detail::make_array(t, *plan, *here) : nullptr;
}

TENON_INLINE PyObject* detail::array_otherwise(const tensor_ref& t, keep_alive& kept, PyObject* like,
                                               interpreter& here) noexcept {
    const auto plan = maker_of(like, here);
    if (!plan) return nullptr;
    std::optional<tensor> own;
    if (auto ok = tensor::keep(t, kept, own); !ok) return raise(ok.error(), "tenon: ");
    tensor& made = *own;  // NOLINT(bugprone-unchecked-optional-access): `keep` has filled it
    const detail::taken taken(made);
    return make_array(made, *plan, here);
}

TENON_INLINE PyObject* to_library(tensor&& t, std::string_view library) noexcept try {
    const detail::taken taken(t);
    interpreter* const here = interpreter::current();
    if (here == nullptr || detail::refuse_nothing(t)) return nullptr;
    if (library == "memoryview") {
        const ref made = ref::take(to_python(std::move(t)));
        return made ? foreign_code([&] { return PyMemoryView_FromObject(made.get()); }) : nullptr;
    }
    const library_row* const row = find_library(library);
    if (row == nullptr || !row->makes_arrays()) {
        std::string known = "memoryview";
        for (const library_row& each : known_libraries)
            if (each.makes_arrays()) append(known, {", ", each.name});
        PyErr_Format(PyExc_ValueError, "tenon: to_library makes no arrays of '%s'; there are %s",
                     std::string(library).c_str(), known.c_str());
        return nullptr;
    }
    const auto plan = detail::maker_of_library(*row);
    return plan ? detail::make_array(t, *plan, *here) : nullptr;
} catch (...) {
    raise_caught();
    return nullptr;
}

TENON_INLINE PyObject* to_library(result<tensor> t, std::string_view library) noexcept {
    return t ? to_library(std::move(*t), library) : raise(t.error(), "tenon: ");
}

TENON_INLINE PyObject* to_python(result<tensor> t, PyObject* like) noexcept {
    return t ? to_python(std::move(*t), like) : raise(t.error(), "tenon: ");
}

}  // namespace tenon::py
