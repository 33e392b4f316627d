// tenon/py/like.hpp: tensors go back as the caller's own library has them: torch in, torch out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <tenon/memory/allocate.hpp>
#include <tenon/py/call.hpp>
#include <tenon/py/export.hpp>
#include <tenon/py/import.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/py/taken.hpp>
#include <tenon/tensor/managed.hpp>
#include <tenon/tensor/tensor.hpp>
#include "../../../src/gpu/device_memory.hpp"
#include "../../../src/py/export/make_by_table.hpp"
#include "../../../src/py/export/makers.hpp"
#include "../../../src/py/import/placing.hpp"
#include "../../../src/py/import/plan_cache.hpp"
#include "../../../src/py/import/type_plan.hpp"
#include "../../../src/py/library/current_stream.hpp"
#include "../../../src/py/library/gradient.hpp"
#include "../../../src/py/library/numpy_abi.hpp"
#include "../../../src/py/runtime/copy.hpp"
#include "../../../src/py/runtime/driver.hpp"
#include "../../../src/py/runtime/interpreter.hpp"
#include "../../../src/py/runtime/nesting.hpp"

namespace tenon::py {

namespace detail {

TENON_COLD [[nodiscard]] inline std::optional<maker> find_maker(PyObject* like, interpreter& here) noexcept {
    const nesting_level level;
    type_plan plan;
    ref type;
    if (!level || !look_at_class(like, here, type, plan)) return std::nullopt;
    std::optional<maker> made(std::in_place, plan);
    if (!made->resolve(like, here, plan.numpy_struct)) return std::nullopt;
    made->note_in(plan, here);
    remember_plan(plan);  // dated before it was made: a change in between leaves it out of date
    return made;
}

/// Nullopt with an exception set on failure.
[[nodiscard]] inline std::optional<maker> maker_of(PyObject* like, interpreter& here) noexcept {
    const type_plan* const known = find_plan_of(like);
    if (known != nullptr && known->maker != maker_kind::unresolved && known->maker_home == &here) [[likely]]
        return std::optional<maker>(std::in_place, *known);
    return find_maker(like, here);
}

/// The array `t` came from, if it is exactly what `t` shows: then there is nothing to make.
[[nodiscard]] inline PyObject* same_array(const tensor& t, PyTypeObject* type) noexcept {
    auto* const owner = static_cast<PyObject*>(t.owner().subject());
    if (t.owner().release_function() != release_object || Py_TYPE(owner) != type) return nullptr;
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
    PyObject* const owner = object_kept_by(t.owner());
    if (owner == nullptr || Py_TYPE(owner) != type) return nullptr;
    bool same = false;
    void* stream = nullptr;
    const bool asked = borrow(owner, {}, [&](const tensor_ref& now) {
        stream = now.stream();
        same = now.data() == t.data() && now.dtype() == t.dtype() && now.device() == t.device() &&
               now.is_read_only() == t.is_read_only() && now.ndim() == t.ndim() &&
               std::equal(now.shape().begin(), now.shape().end(), t.shape().begin()) &&
               std::equal(now.strides().begin(), now.strides().end(), t.strides().begin());
    });
    if (!asked) (void)forget_answer();
    // Its library goes on working on its own stream.
    if (same && stream != t.stream() &&
        !succeeded(without_gil([&] { return gpu::order(t.device(), t.stream(), stream); })))
        return nullptr;
    return same ? owner : nullptr;
}

/// A copy, of memory that TensorFlow, the library that takes bare capsules, cannot compute with: it shares
/// what is off 64 bytes, a `std::vector` say, and ends the process at the first sum over it. False with an
/// exception set on failure.
[[nodiscard]] inline bool align_for_capsule(tensor& t) noexcept {
    if (t.is_aligned_to(allocation_alignment) || t.size() == 0 || !t.is_c_contiguous()) return true;
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
}

/// Hands a producer object, or a legacy capsule, to the library's function.
[[nodiscard]] inline PyObject* make_by_function(tensor&& t, const maker& plan) noexcept {
    const bool of_capsule = plan.kind == maker_kind::of_capsule;
    const nesting_level level;
    if (!level || (of_capsule && !align_for_capsule(t))) return nullptr;
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
            if (t.requires_grad() && plan.honest && !warn_of_gradient(1)) return nullptr;
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

/// The tensor as an array of the library that `like` comes from, over the same memory: PyTorch and every
/// other library with an exchange table by that, NumPy by its C functions, the others by their `from_dlpack`.
/// JAX and TensorFlow compute with memory that is aligned to 64 bytes (`allocate`, `aligned_allocator`): of
/// other memory JAX makes a copy, and so do we for TensorFlow.
/// What comes from no such library (None, bytes, a memoryview) gives a producer object. `t` is taken in any
/// case; null with an exception set on failure.
///
/// An array of NumPy's that was imported, or made by `empty_like`, comes back as the very same object.
[[nodiscard]] inline PyObject* to_python(tensor&& t, PyObject* like) noexcept {
    const detail::taken taken(t);
    interpreter* const here = interpreter::current();
    if (here == nullptr) return nullptr;
    if (like == nullptr || like == Py_None) return to_python(std::move(t));
    const auto plan = detail::maker_of(like, *here);
    return plan ? detail::make_array(t, *plan, *here) : nullptr;
}

/// Memory of your own, as a description and what keeps it alive: for libraries with an exchange table the
/// quickest way. The memory is taken in any case.
template <class Owner>
    requires deleter_or_keeper<Owner>
[[nodiscard]] PyObject* to_python(const tensor_info& info, Owner owner, PyObject* like) {
    keep_alive kept;
    const detail::taken taken(kept);
    if (!detail::keep(info, std::move(owner), kept)) return raise_no_memory();
    interpreter* const here = interpreter::current();
    if (here == nullptr) return nullptr;
    if (like == nullptr || like == Py_None) return to_python(tensor::own(info, std::move(kept)));
    const auto plan = detail::maker_of(like, *here);
    if (!plan) return nullptr;
    if (plan->kind == maker_kind::exchange_table) {
        if (!detail::hand_to_stream(info.device(), info.stream(), plan->table, kept)) return nullptr;
        const auto managed = make_managed<abi::managed_tensor_versioned>(info, kept);
        return managed ? detail::make_by_table(*managed, plan->table) : raise(managed.error(), "tenon: ");
    }
    auto t = tensor::own(info, std::move(kept));
    if (!t) return raise(t.error(), "tenon: ");
    const detail::taken taken_too(*t);
    return detail::make_array(*t, *plan, *here);
}

/// The same for memory just taken over: an error of `tensor::own` is raised.
[[nodiscard]] inline PyObject* to_python(result<tensor> t, PyObject* like) noexcept {
    return t ? to_python(std::move(*t), like) : raise(t.error(), "tenon: ");
}

namespace detail {

/// What an allocator reports becomes an exception of the kind it names.
inline void raise_reported(void*, const char* kind, const char* message) noexcept {
    const ref builtins = ref::take(call::import_module("builtins"));
    const ref named = builtins && kind != nullptr ? ref::take(call::attr(builtins.get(), kind)) : ref();
    PyErr_Clear();
    const bool is_exception = named && PyExceptionClass_Check(named.get());
    PyErr_SetString(is_exception ? named.get() : PyExc_RuntimeError,
                    message != nullptr ? message : "the allocation failed");
}

/// Whether an allocator gave what it was asked for: row-major memory, which whoever fills it relies on.
[[nodiscard]] inline bool is_as_planned(const tensor_ref& got, const tensor_ref& planned) noexcept {
    return got.dtype() == planned.dtype() && got.ndim() == planned.ndim() && !got.is_read_only() &&
           got.is_c_contiguous() &&
           std::equal(got.shape().begin(), got.shape().end(), planned.shape().begin());
}

[[nodiscard]] inline std::optional<tensor> allocate_by_table(
    decltype(abi::exchange_api::managed_tensor_allocator) allocator, const tensor& planned, device where,
    void* const* stream, const maker& plan, interpreter& here) noexcept {
    const abi::exchange_api* const table = plan.table;
    abi::dl_tensor prototype{nullptr,
                             where.to_abi(),
                             planned.ndim(),
                             planned.dtype().to_abi(),
                             const_cast<std::int64_t*>(planned.shape().data()),
                             const_cast<std::int64_t*>(planned.strides().data()),
                             0};
    abi::managed_tensor_versioned* managed = nullptr;
    bool done = false;
    try {
        done = foreign_code([&] { return allocator(&prototype, &managed, nullptr, &raise_reported) == 0; });
    } catch (...) {
        raise_caught();
    }
    const auto fail = [](const error& e) {
        if (PyErr_Occurred() == nullptr) raise(e, "tenon: ");
        return std::nullopt;
    };
    if (!done || managed == nullptr) return fail(refused("exchange table", "the allocator gave no tensor"));
    keep_alive owner = plan.honest
                           ? keep_alive(managed, release_allocated, const_cast<abi::exchange_api*>(table))
                           : keep_managed(managed, true, &here);
    if (PyErr_Occurred() != nullptr) return std::nullopt;
    foreign received(managed);
    auto taken = tensor::take_as(received, owner);
    received.disown();
    if (!taken) return fail(taken.error());
    if (!is_as_planned(*taken, planned) || taken->device() != where)
        return fail(malformed("exchange table", "the allocator gave another tensor than it was asked for"));
    void* current = nullptr;  // a caching allocator's memory is for the stream it works on
    if (stream != nullptr)
        taken->set_stream(*stream);
    else if (const auto ask = table->current_work_stream; where.has_streams() && ask != nullptr) {
        const error_guard keep;
        if (ask_for_stream(ask, where, current)) taken->set_stream(current);
    }
    return std::move(*taken);
}

/// `empty(shape, dtype=...)`; the type by the object of its name in the library, where there is one.
[[nodiscard]] inline PyObject* call_empty(PyObject* function, PyObject* library_of, const tensor& planned) {
    const ref shape = ref::take(tuple_of(planned.shape()));
    const std::string type_name = name(planned.dtype());
    ref type;
    if (library_of != nullptr) {
        type = ref::take(call::attr(library_of, type_name.c_str()));
        if (!type && !forget_answer()) return nullptr;
    }
    if (!type) type = ref::take(text_of(type_name));
    const ref args = shape ? ref::take(PyTuple_Pack(1, shape.get())) : ref();
    const ref keywords = args && type ? ref::take(Py_BuildValue("{s:O}", "dtype", type.get())) : ref();
    return keywords ? call::call(function, args.get(), keywords.get()) : nullptr;
}

/// What has the library's words for element types: the package of a library we know, the standard's namespace
/// of the array, or the package its type is defined in. Nothing when there is none, and an exception only if
/// it ends the call.
[[nodiscard]] inline ref element_types_of(PyObject* like) {
    const ref type = class_of(like);
    const framework_habits* const habits = habits_of(as_type(type));
    const ref method = ref::take(PyUnicode_InternFromString("__array_namespace__"));
    ref found;
    if (habits == nullptr && method && ref::take(call::type_attr(as_type(type), method.get())))
        found = ref::take(call::method(like, method.get()));
    if (!found) {
        if (!forget_answer()) return {};
        const std::string package =
            habits != nullptr ? std::string(habits->package) : defining_package(as_type(type));
        found = ref::take(call::import_module(package.c_str()));
        if (!found) (void)forget_answer();
    }
    return found;
}

[[nodiscard]] inline std::optional<tensor> allocate_by_library(PyObject* like, const tensor& planned,
                                                               const maker& plan, interpreter& here) noexcept
    try {
    const nesting_level level;
    if (!level) return std::nullopt;
    ref made;
    if (plan.kind == maker_kind::numpy) {
        const auto numpy = numpy_abi::functions::find(here);
        if (!numpy) return std::nullopt;
        PyObject* const descr = numpy::descriptor_for(planned.dtype(), planned.is_subbyte_padded(), *numpy);
        if (descr == nullptr) return std::nullopt;
        Py_ssize_t shape[max_rank];
        for (std::size_t i = 0; i < planned.shape().size(); ++i)
            shape[i] = static_cast<Py_ssize_t>(planned.shape(i));
        made = ref::take(numpy->new_array(descr, planned.ndim(), shape, nullptr, nullptr, 0));
    } else {
        const ref library = plan.plain_dtypes ? ref() : element_types_of(like);
        if (PyErr_Occurred() != nullptr) return std::nullopt;
        made = ref::take(call_empty(plan.make_empty, library.get(), planned));
    }
    if (!made) return std::nullopt;
    auto taken = from_python(made.get(), {.writable = true});
    if (!taken) return taken;
    if (!is_as_planned(*taken, planned)) {
        raise(malformed("empty", "the library gave another array than it was asked for"), "tenon: ");
        return std::nullopt;
    }
    if (object_kept_by(taken->owner()) != made.get())  // so that it can go back as it is
        taken->owner() = keep_array(std::move(made), std::move(taken->owner()), &here);
    return taken;
} catch (...) {
    raise_caught();
    return std::nullopt;
}

}  // namespace detail

/// A new, writable, uninitialised tensor of this shape and type where `like` is, which `to_python(t, like)`
/// gives back as an array of `like`'s library without copying. The memory comes from the library: its
/// exchange table's allocator (PyTorch's caching one), or its `empty`. Arrays of JAX and TensorFlow must not
/// be written to: for them, and for what belongs to no library, memory of our own does, on a GPU the
/// driver's. It is to be written to on its `stream()`. Nullopt with an exception set on failure. Whoever
/// knows where `like` is says so, and it is not asked again.
[[nodiscard]] inline std::optional<tensor> empty_like(PyObject* like, const axes& shape, element_type type,
                                                      const tensor_ref* known = nullptr) noexcept {
    interpreter* const here = interpreter::current();
    if (here == nullptr) return std::nullopt;
    const auto fail = [](const error& e) {
        raise(e, "tenon: ");
        return std::nullopt;
    };
    const bool wants_place = like != nullptr && like != Py_None;
    const auto plan = wants_place ? detail::maker_of(like, *here)
                                  : std::optional<detail::maker>(std::in_place, type_plan{});
    if (!plan) return std::nullopt;
    const bool padded = plan->kind == maker_kind::numpy && type.type.is_subbyte();
    const auto planned = tenon::detail::plan_allocation(type, shape, padded);
    if (!planned) return fail(planned.error());
    if (plan->kind == maker_kind::numpy || plan->make_empty != nullptr) {
        if (plan->kind != maker_kind::exchange_table || plan->table->managed_tensor_allocator == nullptr)
            return detail::allocate_by_library(like, *planned, *plan, *here);
    }
    device where{};
    void* stream = nullptr;
    if (plan->kind != maker_kind::unresolved && plan->kind != maker_kind::none) {
        const auto look = [&](const tensor_ref& t) {
            where = t.device();
            stream = t.stream();
        };
        if (known != nullptr)
            look(*known);
        else if (!borrow(like, {}, look))
            return std::nullopt;
    }
    // Our own table allocates on the host alone.
    const auto allocator =
        plan->kind == maker_kind::exchange_table ? plan->table->managed_tensor_allocator : nullptr;
    const bool can_allocate =
        allocator != nullptr && (allocator != &detail::allocate_managed || !where.has_streams());
    if (can_allocate)
        return detail::allocate_by_table(allocator, *planned, where, known != nullptr ? &stream : nullptr,
                                         *plan, *here);
    if (!where.is_host_accessible() && !where.has_streams()) {
        return fail(refused("device",
                            "this library's arrays cannot be written to, and memory of ours "
                            "would not be on their device",
                            where.type));
    }
    auto made = where.has_streams()
                    ? detail::without_gil([&] { return gpu::allocate(where, type, shape, stream); })
                    : allocate(type, shape);
    if (!made) return fail(made.error());
    return std::move(*made);
}

template <class T>
[[nodiscard]] std::optional<tensor> empty_like(PyObject* like, const axes& shape) noexcept {
    return empty_like(like, shape, dtype_of<T>);
}
/// Of the shape and type that `like` itself has.
[[nodiscard]] inline std::optional<tensor> empty_like(PyObject* like) noexcept {
    std::optional<axes> shape;
    dtype type;
    const auto look = [&](const tensor_ref& t) {
        shape.emplace(t.shape());
        type = t.dtype();
    };
    return borrow(like, {}, look) && shape ? empty_like(like, *shape, type) : std::nullopt;
}

}  // namespace tenon::py
