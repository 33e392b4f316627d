// src/py/export/arrow.hpp: what `__arrow_c_schema__`, `__arrow_c_array__` and `__arrow_c_device_array__` of
// a producer answer.
#pragma once

#include "../import/all.hpp"
#include "byte_strides.hpp"

namespace tenon::py {

namespace detail {

[[nodiscard]] inline abi::arrow_schema& released_part(abi::arrow_schema& s) noexcept { return s; }
[[nodiscard]] inline abi::arrow_array& released_part(abi::arrow_array& a) noexcept { return a; }
[[nodiscard]] inline abi::arrow_array& released_part(abi::arrow_device_array& d) noexcept { return d.array; }

/// A consumer moves what is inside; the place it was in is ours to free in any case.
template <class Struct>
void drop_arrow_capsule(PyObject* capsule) noexcept {
    const error_guard keep;  // the owner's own code runs, and may not see what is pending
    Struct* const place = struct_in<Struct>(capsule);
    if (place == nullptr) return;
    auto& inside = released_part(*place);
    if (inside.release != nullptr) inside.release(&inside);
    std::free(place);
}

/// A capsule around a struct that `fill` makes; null with an exception set, and nothing made, on failure.
template <class Struct, class Fill>
[[nodiscard]] ref make_arrow_capsule(Fill&& fill) noexcept {
    auto* const place = static_cast<Struct*>(std::malloc(sizeof(Struct)));
    if (place == nullptr) {
        PyErr_NoMemory();
        return {};
    }
    *place = Struct{};
    ref capsule = ref::take(PyCapsule_New(place, arrow_capsule_name<Struct>, &drop_arrow_capsule<Struct>));
    if (!capsule) {
        std::free(place);
        return {};
    }
    // From here on the capsule sees to everything.
    if (fill(*place)) return capsule;
    PyErr_NoMemory();
    return {};
}

[[nodiscard]] inline ref make_arrow_schema(const tensor_ref& t) noexcept {
    return make_arrow_capsule<abi::arrow_schema>([&](abi::arrow_schema& out) {
        tenon::arrow::describe_type(t, out);
        return true;
    });
}

/// Arrow's consumers know of no stream: what a GPU still has to do with the memory has to be done.
[[nodiscard]] inline bool finish_work(const tensor_ref& t, bool stays_put) noexcept {
    if (!t.device().is_cuda()) return finish_device_work(t.device(), stays_put);
    return t.empty() || succeeded(without_gil_if(stays_put, [&] { return gpu::finish_device(t.device()); }));
}

/// The pair of capsules over the memory of `t`, which `keeper` keeps alive; `set` completes the second.
template <class Array, class Set>
[[nodiscard]] PyObject* arrow_pair(const tensor_ref& t, PyObject* keeper, interpreter* here,
                                   Set&& set) noexcept {
    const ref schema = make_arrow_schema(t);
    if (!schema) return nullptr;
    const ref array = make_arrow_capsule<Array>([&](Array& out) {
        keep_alive owner = keep_object(keeper, here);
        if (!tenon::arrow::make_array(t, address_of(t), owner, released_part(out))) return false;
        set(out);
        return true;
    });
    return array ? PyTuple_Pack(2, schema.get(), array.get()) : nullptr;
}

[[nodiscard]] inline bool can_leave_by_arrow(const tensor_ref& t, bool on_any_device) noexcept {
    const device where = t.device();
    result<void> ok = tenon::arrow::can_leave(t);
    if (!where.is_host_accessible() && !on_any_device)
        ok = refused("device", "the memory cannot be read on the host", where.type)
                 .with_advice("use __arrow_c_device_array__, or a copy on the CPU");
    else if (!where.is_host_accessible() && !where.is_cuda())
        ok = refused("device", "the memory of this device cannot be waited for here", where.type)
                 .with_advice("use __dlpack__, or a copy on the CPU");
    if (!ok) raise(ok.error(), "tenon: ");
    return ok.has_value();
}

}  // namespace detail

/// The keywords of Arrow's methods. The schema that is asked for is a wish, which a tensor has no way to
/// grant without a copy.
struct arrow_keywords {
    /// Reads `requested_schema`; others only where `open`, and then only as None: they may come to mean
    /// something.
    [[nodiscard]] static bool read(const char* method, bool open, PyObject* const* args,
                                   Py_ssize_t positional, PyObject* names) noexcept {
        if (positional > 1) {
            PyErr_Format(PyExc_TypeError, "%s() takes at most 1 argument (%zd given)", method, positional);
            return false;
        }
        if (positional == 1 && !is_schema(args[0])) return false;
        const Py_ssize_t count = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
        for (Py_ssize_t i = 0; i < count; ++i) {
            PyObject* const name = PyTuple_GET_ITEM(names, i);
            PyObject* const value = args[positional + i];
            if (PyUnicode_CompareWithASCIIString(name, "requested_schema") == 0) {
                if (positional == 1) {
                    PyErr_Format(PyExc_TypeError, "%s() got two values for 'requested_schema'", method);
                    return false;
                }
                if (!is_schema(value)) return false;
            } else if (!open) {
                return argument::unexpected(method, name);
            } else if (value != Py_None) {
                PyErr_Format(PyExc_NotImplementedError, "tenon: %s() knows no keyword %R", method, name);
                return false;
            }
        }
        return true;
    }

private:
    [[nodiscard]] static bool is_schema(PyObject* value) noexcept {
        return value == Py_None || struct_in<abi::arrow_schema>(value) != nullptr ||
               argument::wrong("requested_schema", "None or a capsule named \"arrow_schema\"", value);
    }
};

/// `__arrow_c_schema__()`: a capsule, or null with an exception set.
[[nodiscard]] inline PyObject* answer_arrow_schema(const tensor_ref& t) noexcept {
    return detail::can_leave_by_arrow(t, true) ? detail::make_arrow_schema(t).release() : nullptr;
}

/// `keeper.__arrow_c_array__()` for the tensor `t`, whose memory the object `keeper` keeps alive: a pair of
/// capsules, or null with an exception set.
[[nodiscard]] inline PyObject* answer_arrow_array(const tensor_ref& t, PyObject* keeper, bool stays_put,
                                                  interpreter* here) noexcept {
    if (!detail::can_leave_by_arrow(t, false) || !detail::finish_work(t, stays_put)) return nullptr;
    return detail::arrow_pair<abi::arrow_array>(t, keeper, here, [](abi::arrow_array&) {});
}

/// `keeper.__arrow_c_device_array__()`: the same on any device. There is no event: the data is complete.
[[nodiscard]] inline PyObject* answer_arrow_device_array(const tensor_ref& t, PyObject* keeper,
                                                         bool stays_put, interpreter* here) noexcept {
    if (!detail::can_leave_by_arrow(t, true) || !detail::finish_work(t, stays_put)) return nullptr;
    return detail::arrow_pair<abi::arrow_device_array>(t, keeper, here, [&](abi::arrow_device_array& out) {
        out.device_type = t.device().type;
        out.device_id = t.device().is_cpu() ? -1 : t.device().id;
    });
}

}  // namespace tenon::py
