// src/py/export/make_by_table.hpp: a tensor becomes an array of a library that has an exchange table, by
// that.
#pragma once

#include "../import/all.hpp"

namespace tenon::py::detail {

/// Lets go of what a table that we know has allocated: `home` is that table.
inline void release_allocated(void* subject, void*) noexcept { foreign::call_deleter(subject, true); }

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
        (count == 0 || (std::memcmp(there.shape, t.shape().data(), count * sizeof(std::int64_t)) == 0 &&
                        there.strides != nullptr &&
                        std::memcmp(there.strides, t.strides().data(), count * sizeof(std::int64_t)) == 0));
    return same ? managed : nullptr;
}

using table_function = decltype(abi::exchange_api::managed_tensor_to_py_object_no_sync);

/// The table's function that makes an object of a struct, or null with an exception set: it was there when
/// the table was looked at.
[[nodiscard]] inline table_function function_that_makes(const abi::exchange_api* table) noexcept {
    const table_function function = table->managed_tensor_to_py_object_no_sync;
    if (function == nullptr)
        raise(refused("exchange table", "the function that makes a tensor is null by now"), "tenon: ");
    return function;
}

/// What it makes; null with an exception set on failure, also of one that said that it was `done`.
[[nodiscard]] inline PyObject* make_of_struct(table_function make, abi::managed_tensor_versioned* managed,
                                              bool& done) noexcept {
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
    const table_function make = function_that_makes(table);
    PyObject* const made = make != nullptr ? make_of_struct(make, managed, done) : nullptr;
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
    made_on = gpu::named_stream(where, made_on);
    current = gpu::named_stream(where, current);
    if (made_on == current) return true;
    if (!succeeded(without_gil([&] { return gpu::order(where, made_on, current); }))) return false;
    owner = gpu::released_late(std::move(owner), where, made_on, current);
    return true;
} catch (...) {
    raise_caught();
    return false;
}

[[nodiscard]] inline PyObject* make_by_table(tensor&& t, const abi::exchange_api* table) noexcept {
    auto* const allocated = allocated_struct(t, table);
    if (!hand_to_stream(t.device(), t.stream(), table, t.owner())) return nullptr;
    // Unless it has been wrapped for another stream.
    if (allocated != nullptr && t.owner().subject() == allocated) {
        const table_function make = function_that_makes(table);
        if (make == nullptr) return nullptr;
        t.owner().disown();
        bool done = false;  // what has become of it after a failure nobody can tell: it is left alone then
        return make_of_struct(make, allocated, done);
    }
    auto* const managed =
        make_managed<abi::managed_tensor_versioned>(t, t.owner(), {.fresh_copy = t.is_copied()});
    return managed != nullptr ? make_by_table(managed, table) : PyErr_NoMemory();
}

}  // namespace tenon::py::detail
