// src/py/export/like.cpp: a tensor becomes an array of the library that another object comes from.
#include "all.hpp"

namespace tenon::py {

namespace detail {

// --- by an exchange table ----------------------------------------------------------------------------

/// The struct that the table itself has allocated, if `t` still shows what is in it: it goes back as it came.
[[nodiscard]] inline abi::managed_tensor_versioned* allocated_struct(
    const tensor& t, const abi::exchange_api* table) noexcept {
    const keep_alive& owner = t.owner();
    if (!owner.is(owner_kind::allocated) || owner.context() != table) return nullptr;
    auto* const managed = static_cast<abi::managed_tensor_versioned*>(owner.subject());
    const abi::dl_tensor& there = managed->tensor;
    const auto count = static_cast<std::size_t>(t.ndim());
    const bool same = there.ndim == t.ndim() && there.data == t.base() &&
                      there.byte_offset == t.byte_offset() && dtype(there.dtype) == t.dtype() &&
                      device(there.device) == t.device() && managed->flags == t.flags() &&
                      (count == 0 || (there.strides != nullptr &&
                                      is_same(extents(there.shape, count), t.shape()) &&
                                      is_same(extents(there.strides, count), t.strides())));
    return same ? managed : nullptr;
}

/// What the table makes of a struct; null with an exception set on failure, also of one that said that it was
/// `done`.
[[nodiscard]] inline PyObject* make_of_struct(const abi::exchange_api* table,
                                              abi::managed_tensor_versioned* managed, bool& done) noexcept {
    const auto make = table->managed_tensor_to_py_object_no_sync;
    if (make == nullptr)  // it was there when the table was looked at
        return raise(refused("exchange table", "the function that makes a tensor is null by now"), "tenon: ");
    void* made = nullptr;
    try {
        done = foreign_code([&] { return make(managed, &made) == 0; });
    } catch (...) {
        raise_caught();
    }
    if (done && made != nullptr && PyErr_Occurred() == nullptr) [[likely]]
        return static_cast<PyObject*>(made);
    if (done) call::drop(static_cast<PyObject*>(made));
    if (PyErr_Occurred() == nullptr)
        raise(refused("exchange table", "the library made no tensor and gave no reason"), "tenon: ");
    return nullptr;
}

/// Hands a struct of ours to a library's table; it is gone in any case.
[[nodiscard]] inline PyObject* make_by_table(abi::managed_tensor_versioned* managed,
                                             const abi::exchange_api* table) noexcept {
    using block = tenon::detail::managed_block<abi::managed_tensor_versioned>;
    // After a failure some libraries have let go of the struct and some have not; ours says which (X12).
    bool released = false;
    block::of(managed)->released = &released;
    bool done = false;
    PyObject* const made = make_of_struct(table, managed, done);
    if (!released) block::of(managed)->released = nullptr;
    if (!done && !released) {
        const error_guard keep;
        managed->deleter(managed);
    }
    return made;
}

/// A table takes a tensor over without waiting for anything: the stream its library works on is made to wait
/// for the one the memory is made on, and the memory is given back after both. False with an exception set.
[[nodiscard]] inline bool hand_to_stream(device where, void* made_on, const abi::exchange_api* table,
                                         keep_alive& owner) noexcept try {
    void* current = nullptr;
    const auto ask = table->current_work_stream;
    if (!where.has_streams() || ask == nullptr) return true;
    if (!foreign_code([&] { return ask(where.type, where.id, &current) == 0; })) return stream_unknown();
    if (gpu::is_same_stream(where, made_on, current)) return true;
    if (!succeeded(without_gil([&] { return gpu::order(where, made_on, current); }))) return false;
    owner = gpu::released_late(std::move(owner), where, made_on, current);
    return true;
} catch (...) {
    raise_caught();
    return false;
}

[[nodiscard]] inline PyObject* make_by_table(tensor&& t, const abi::exchange_api* table) noexcept {
    if (!hand_to_stream(t.device(), t.stream(), table, t.owner())) return nullptr;
    auto* const allocated = allocated_struct(t, table);  // not if it has been wrapped for another stream
    if (allocated != nullptr && table->managed_tensor_to_py_object_no_sync != nullptr) {
        t.owner().disown();
        bool done = false;  // what has become of it after a failure nobody can tell: it is left alone then
        return make_of_struct(table, allocated, done);
    }
    auto* const managed =
        make_managed<abi::managed_tensor_versioned>(t, t.owner(), {.fresh_copy = t.is_copied()});
    return managed != nullptr ? make_by_table(managed, table) : PyErr_NoMemory();
}

// --- by NumPy, and by functions of other libraries ---------------------------------------------------

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
        raise(errc::refused,
              sentence({"tenon: ", library.name, " does not take this tensor: its complex numbers are not aligned to ",
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

TENON_FAST TENON_INLINE PyObject* detail::array_over(const tensor_ref& t, keep_alive& kept,
                                                     PyObject* like) noexcept {
    const taken taken(kept);
    interpreter* const here = interpreter::current();
    if (here == nullptr) return nullptr;
    const type_plan* const known = plan_with_maker(like, *here);
    if (known != nullptr && known->maker.kind == maker_kind::exchange_table &&
        known->can_use(t.data(), t.dtype(), t.device())) {
        const abi::exchange_api* const table = known->table;
        const ref alive = class_of(like);  // whose table it is
        if (!hand_to_stream(t.device(), t.stream(), table, kept)) return nullptr;
        auto* const managed = make_managed<abi::managed_tensor_versioned>(t, kept);
        return managed != nullptr ? make_by_table(managed, table) : PyErr_NoMemory();
    }
    const auto plan = maker_of(like, *here);
    if (!plan) return nullptr;
    std::optional<tensor> own;
    if (auto ok = tensor::keep(t, kept, own); !ok) return raise(ok.error(), "tenon: ");
    tensor& made = *own;  // NOLINT(bugprone-unchecked-optional-access): `keep` has filled it
    const detail::taken taken_too(made);
    return make_array(made, *plan, *here);
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
