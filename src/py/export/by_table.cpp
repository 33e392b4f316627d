// src/py/export/by_table.cpp: a tensor becomes an array of a library's by its exchange table.
#include "like.hpp"

namespace tenon::py::detail {

/// The struct that the table itself has allocated, if `t` still shows what is in it: it goes back as it came.
[[nodiscard]] inline abi::managed_tensor_versioned* allocated_struct(
    const tensor& t, const abi::exchange_api* table) noexcept {
    const keep_alive& owner = t.owner();
    if (!owner.is(owner_kind::allocated) || owner.context() != table) return nullptr;
    auto* const managed = static_cast<abi::managed_tensor_versioned*>(owner.subject());
    const abi::dl_tensor& there = managed->tensor;
    const auto count = static_cast<std::size_t>(t.ndim());
    const bool same =
        there.ndim == t.ndim() && there.data == t.base() && there.byte_offset == t.byte_offset() &&
        dtype(there.dtype) == t.dtype() && device(there.device) == t.device() &&
        managed->flags == t.flags() &&
        (count == 0 || (there.strides != nullptr && is_same(extents(there.shape, count), t.shape()) &&
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

TENON_INLINE PyObject* make_by_table(tensor&& t, const abi::exchange_api* table) noexcept {
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

TENON_FAST TENON_INLINE PyObject* array_over(const tensor_ref& t, keep_alive& kept, PyObject* like) noexcept {
    const taken taken(kept);
    interpreter* const here = interpreter::current();
    if (here == nullptr) return nullptr;
    const type_plan* const known = plan_with_maker(like, *here);
    if (known == nullptr || known->maker.kind != maker_kind::exchange_table ||
        !known->can_use(t.data(), t.dtype(), t.device()))
        return array_otherwise(t, kept, like, *here);
    const abi::exchange_api* const table = known->table;
    const ref alive = class_of(like);  // whose table it is
    if (!hand_to_stream(t.device(), t.stream(), table, kept)) return nullptr;
    auto* const managed = make_managed<abi::managed_tensor_versioned>(t, kept);
    return managed != nullptr ? make_by_table(managed, table) : PyErr_NoMemory();
}

}  // namespace tenon::py::detail
