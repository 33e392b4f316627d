// src/py/export/like.cpp: a tensor becomes an array of the library that another object comes from.
#include "all.hpp"

namespace tenon::py {

namespace detail {

/// The array `t` came from, if it is exactly what `t` shows: then there is nothing to make.
[[nodiscard]] inline PyObject* same_array(const tensor& t, PyTypeObject* type) noexcept {
    auto* const owner = static_cast<PyObject*>(t.owner().subject());
    if (!t.owner().is(owner_kind::object) || Py_TYPE(owner) != type) return nullptr;
    const auto* const a = reinterpret_cast<const numpy_abi::array*>(owner);
    const auto number = numpy_abi::number_of(t.dtype());
    if (!number || a->descr->type_num != *number || a->descr->byteorder == numpy_abi::swapped_order ||
        a->data != t.data() || a->nd != t.ndim() ||
        ((a->flags & numpy_abi::flag_writeable) == 0) != t.is_read_only())
        return nullptr;
    for (std::int32_t i = 0; i < a->nd; ++i) {
        const auto axis = static_cast<std::size_t>(i);
        if (a->dimensions[i] != t.shape(axis) || a->strides[i] != byte_stride(t, axis)) return nullptr;
    }
    return owner;
}

/// The same for a library whose arrays have to be asked: empty_like keeps the very array.
[[nodiscard]] inline PyObject* same_array_by_asking(const tensor& t, PyTypeObject* type) noexcept {
    PyObject* const owner = array_kept_by(t.owner());
    if (owner == nullptr || Py_TYPE(owner) != type) return nullptr;
    bool same = false;
    void* stream = nullptr;
    const bool asked = borrow(owner, {}, [&](const tensor_ref& now) {
        stream = now.stream();
        same = now.data() == t.data() && now.dtype() == t.dtype() && now.device() == t.device() &&
               now.is_read_only() == t.is_read_only() && std::ranges::equal(now.shape(), t.shape()) &&
               std::ranges::equal(now.strides(), t.strides());
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
[[nodiscard]] inline bool align_for(tensor& t, const maker& plan) noexcept try {
    if (plan.can_use(t.data(), t.dtype(), t.device()) || t.empty()) [[likely]]
        return true;
    const library_row& library = *plan.library;
    if (!library.immutable) {
        const std::string who(library.name);
        raise(errc::refused, "tenon: " + who +
                                 " does not take this tensor: its complex numbers are not aligned to " +
                                 std::to_string(library.alignment_of_complex128) + " bytes, as " + who +
                                 " reads them; make a copy of it");
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
[[nodiscard]] inline PyObject* make_by_function(tensor&& t, const maker& plan) noexcept {
    const bool of_capsule = plan.kind == maker_kind::of_capsule;
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
    if (plan.kind == maker_kind::type_method)
        return call::method(reinterpret_cast<PyObject*>(plan.type), "from_dlpack", "O", given.get());
    return call::one_argument(plan.make_from, given.get());
}

/// What the maker makes of the tensor, which is taken on success, and by the library's functions in any case.
[[nodiscard]] inline PyObject* make_array(tensor& t, const maker& plan, interpreter& here) noexcept {
    switch (plan.kind) {
        case maker_kind::unresolved:
        case maker_kind::none:
            break;
        case maker_kind::exchange_table:
            if (reinterpret_cast<PyObject*>(plan.type) == here.package_type.load()) break;
            if (!align_for(t, plan)) return nullptr;
            if (t.requires_grad() && plan.genuine && !warn_of_gradient(1)) return nullptr;
            return make_by_table(std::move(t), plan.table);
        case maker_kind::numpy:
            if (PyObject* const same = same_array(t, plan.type)) return ref::borrow(same).release();
            if (!finish_device_work(t.device())) return nullptr;
            return numpy::to_array(std::move(t), here);
        case maker_kind::function:
        case maker_kind::of_capsule:
        case maker_kind::type_method:
            if (PyObject* const same = same_array_by_asking(t, plan.type)) return ref::borrow(same).release();
            if (PyErr_Occurred() != nullptr) return nullptr;
            return make_by_function(std::move(t), plan);
    }
    return to_python(std::move(t));
}

}  // namespace detail

TENON_INLINE PyObject* to_python(tensor&& t, PyObject* like) noexcept {
    const detail::taken taken(t);
    interpreter* const here = interpreter::current();
    if (here == nullptr) return nullptr;
    if (like == nullptr || like == Py_None) return to_python(std::move(t));
    const auto plan = detail::maker_of(like, *here);
    return plan ? detail::make_array(t, *plan, *here) : nullptr;
}

TENON_INLINE PyObject* detail::array_over(const tensor_info& info, keep_alive& kept,
                                          PyObject* like) noexcept {
    const taken taken(kept);
    interpreter* const here = interpreter::current();
    if (here == nullptr) return nullptr;
    if (like == nullptr || like == Py_None) return to_python(tensor::own(info, std::move(kept)));
    const auto plan = maker_of(like, *here);
    if (!plan) return nullptr;
    if (plan->kind == maker_kind::exchange_table && plan->can_use(info.data(), info.dtype(), info.device())) {
        if (!hand_to_stream(info.device(), info.stream(), plan->table, kept)) return nullptr;
        const auto managed = make_managed<abi::managed_tensor_versioned>(info, kept);
        return managed ? make_by_table(*managed, plan->table) : raise(managed.error(), "tenon: ");
    }
    auto t = tensor::own(info, std::move(kept));
    if (!t) return raise(t.error(), "tenon: ");
    const detail::taken taken_too(*t);
    return make_array(*t, *plan, *here);
}

TENON_INLINE PyObject* to_python(result<tensor> t, PyObject* like) noexcept {
    return t ? to_python(std::move(*t), like) : raise(t.error(), "tenon: ");
}

}  // namespace tenon::py
