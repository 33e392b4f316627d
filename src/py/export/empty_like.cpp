// src/py/export/empty_like.cpp: new memory from the library that an object comes from.
#include "all.hpp"

namespace tenon::py {

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
    return got.dtype() == planned.dtype() && !got.is_read_only() && got.is_c_contiguous() &&
           is_same(got.shape(), planned.shape());
}

[[nodiscard]] inline std::optional<tensor> allocate_by_table(
    decltype(abi::exchange_api::managed_tensor_allocator) allocator, const tensor& planned, device where,
    void* const* stream, const array_maker& plan, interpreter& here) noexcept {
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
    if (!done || managed == nullptr)
        return unless_failed(refused("exchange table", "the allocator gave no tensor"));
    keep_alive owner = plan.genuine_table
                           ? keep_alive(managed, release_allocated, const_cast<abi::exchange_api*>(table),
                                        owner_kind::allocated)
                           : keep_managed(managed, true, &here);
    if (PyErr_Occurred() != nullptr) return std::nullopt;
    foreign received(managed);
    auto taken = tensor::take_as(received, owner);
    received.disown();
    if (!taken) return unless_failed(std::move(taken));
    if (!is_as_planned(*taken, planned) || taken->device() != where)
        return unless_failed(
            malformed("exchange table", "the allocator gave another tensor than it was asked for"));
    const auto ask = table->current_work_stream;
    if (stream != nullptr) {
        taken->set_stream(*stream);
    } else if (where.has_streams() && ask != nullptr) {
        void* current = nullptr;  // a caching allocator's memory is for the stream it works on
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

[[nodiscard]] inline std::optional<tensor> allocate_by_library(PyObject* like, const tensor& planned,
                                                               const array_maker& plan,
                                                               interpreter& here) noexcept try {
    const nesting_level level;
    if (!level) return std::nullopt;
    ref made;
    if (plan.maker.kind == maker_kind::numpy) {
        const auto numpy = numpy_abi::functions::find(here);
        made = numpy ? ref::take(numpy::new_array(planned, *numpy, true)) : ref();
    } else {
        const ref library = plan.stream_alone ? ref() : element_types_of(like);
        if (PyErr_Occurred() != nullptr) return std::nullopt;
        made = ref::take(call_empty(plan.maker.empty, library.get(), planned));
    }
    if (!made) return std::nullopt;
    auto taken = from_python(made.get(), {.writable = true});
    if (!taken) return taken;
    if (!is_as_planned(*taken, planned))
        return unless_failed(malformed("empty", "the library gave another array than it was asked for"));
    if (array_kept_by(taken->owner()) != made.get())  // so that it can go back as it is
        taken->owner() = keep_array(std::move(made), std::move(taken->owner()), &here);
    return taken;
} catch (...) {
    raise_caught();
    return std::nullopt;
}

}  // namespace detail

TENON_INLINE std::optional<tensor> empty_like(PyObject* like, const axes& shape, element_type type,
                                              const tensor_ref* known) noexcept {
    using detail::unless_failed;
    interpreter* const here = interpreter::current();
    const auto plan = here != nullptr ? detail::maker_of(like, *here) : std::nullopt;
    if (!plan) return std::nullopt;
    const maker_kind kind = plan->maker.kind;
    auto planned =
        tenon::detail::plan_allocation(type, shape, kind == maker_kind::numpy && type.type.is_subbyte());
    if (!planned) return unless_failed(std::move(planned));
    const auto allocator_now = [&] {  // anything may have changed the table since it was looked at
        return kind == maker_kind::exchange_table ? plan->table->managed_tensor_allocator : nullptr;
    };
    const bool by_library = kind == maker_kind::numpy || plan->maker.empty != nullptr;
    if (by_library && allocator_now() == nullptr)
        return detail::allocate_by_library(like, *planned, *plan, *here);
    device where{};
    void* stream = nullptr;
    const auto look = [&](const tensor_ref& t) {
        where = t.device();
        stream = t.stream();
    };
    if (kind != maker_kind::unresolved && kind != maker_kind::none) {
        if (known != nullptr)
            look(*known);
        else if (!borrow(like, {}, look))
            return std::nullopt;
    }
    // Our own table allocates on the host alone.
    const auto allocator = allocator_now();
    if (allocator != nullptr && (allocator != &detail::allocate_managed || !where.has_streams()))
        return detail::allocate_by_table(allocator, *planned, where, known != nullptr ? &stream : nullptr,
                                         *plan, *here);
    if (where.has_streams())
        return unless_failed(detail::without_gil([&] { return gpu::allocate(where, type, shape, stream); }));
    if (!where.is_host_accessible())
        return unless_failed(refused("device",
                                     "this library's arrays cannot be written to, and memory of ours "
                                     "would not be on their device",
                                     where.type));
    return unless_failed(allocate(type, shape));
}

TENON_INLINE std::optional<tensor> empty_like(PyObject* like) noexcept {
    std::optional<axes> shape;
    dtype type;
    const auto look = [&](const tensor_ref& t) {
        shape.emplace(t.shape());
        type = t.dtype();
    };
    return borrow(like, {}, look) && shape ? empty_like(like, *shape, type) : std::nullopt;
}

}  // namespace tenon::py
