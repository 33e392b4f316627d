// src/py/export/arrow.cpp: what `__arrow_c_schema__`, `__arrow_c_array__` and `__arrow_c_device_array__` of a
// producer answer.
#include "all.hpp"

namespace tenon::py::detail {

[[nodiscard]] inline abi::arrow_schema& released_part(abi::arrow_schema& s) noexcept { return s; }
[[nodiscard]] inline abi::arrow_array& released_part(abi::arrow_device_array& d) noexcept { return d.array; }

/// A consumer moves what is inside; the place it was in is ours to free in any case.
template <class Struct>
void drop_arrow_capsule(PyObject* capsule) noexcept {
    const error_guard keep;  // the owner's own code runs, and may not see what is pending
    auto* const place = static_cast<Struct*>(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)));
    if (place == nullptr) return;
    auto& inside = released_part(*place);
    if (inside.release != nullptr) inside.release(&inside);
    std::free(place);
}

/// A capsule around a struct that `fill` makes; null with an exception set, and nothing made, on failure.
template <class Struct, class Fill>
[[nodiscard]] ref make_arrow_capsule(const char* name, Fill&& fill) noexcept {
    auto* const place = static_cast<Struct*>(std::calloc(1, sizeof(Struct)));
    ref capsule =
        place != nullptr ? ref::take(PyCapsule_New(place, name, &drop_arrow_capsule<Struct>)) : ref();
    // From here on the capsule sees to everything.
    if (capsule && fill(*place)) return capsule;
    if (!capsule) std::free(place);
    if (PyErr_Occurred() == nullptr) PyErr_NoMemory();
    return {};
}

[[nodiscard]] inline ref make_arrow_schema(const tensor_ref& t) noexcept {
    return make_arrow_capsule<abi::arrow_schema>(arrow::capsule_name<abi::arrow_schema>,
                                                 [&](abi::arrow_schema& out) {
                                                     tenon::arrow::describe_type(t, out);
                                                     return true;
                                                 });
}

/// Arrow's consumers know of no stream: what a GPU still has to do with the memory has to be done.
[[nodiscard]] inline bool finish_work(const tensor_ref& t, bool stays_put) noexcept {
    if (!t.device().is_cuda()) return finish_device_work(t.device(), stays_put);
    return t.empty() || succeeded(without_gil_if(stays_put, [&] { return gpu::finish_device(t.device()); }));
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

/// The schema that is asked for is a wish, which a tensor has no way to grant without a copy.
[[nodiscard]] inline bool is_schema(PyObject* value) noexcept {
    return value == Py_None || arrow::struct_in<abi::arrow_schema>(value) != nullptr ||
           argument::wrong("requested_schema", "None or a capsule named \"arrow_schema\"", value);
}

/// Reads `requested_schema`; other keywords only where `open`, and then only as None: they may come to mean
/// something.
[[nodiscard]] inline bool read_arrow_keywords(const char* method, bool open, PyObject* const* args,
                                              Py_ssize_t positional, PyObject* names) noexcept {
    if (positional > 1) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most 1 argument (%zd given)", method, positional);
        return false;
    }
    if (positional == 1 && !is_schema(args[0])) return false;
    return argument::read_keywords(args + positional, names, [&](PyObject* name, PyObject* value) {
        if (PyUnicode_CompareWithASCIIString(name, "requested_schema") == 0) {
            if (positional == 0) return is_schema(value);
            PyErr_Format(PyExc_TypeError, "%s() got two values for 'requested_schema'", method);
            return false;
        }
        if (!open) return argument::unexpected(method, name);
        if (value == Py_None) return true;
        PyErr_Format(PyExc_NotImplementedError, "tenon: %s() knows no keyword %R", method, name);
        return false;
    });
}

/// A pair of capsules over the memory, which `self` keeps alive; null with an exception set on failure.
[[nodiscard]] inline PyObject* answer_arrow(bool on_any_device, answer::source s, PyObject* self,
                                            PyObject* const* args, Py_ssize_t positional,
                                            PyObject* names) noexcept {
    const char* const method = on_any_device ? "__arrow_c_device_array__" : "__arrow_c_array__";
    interpreter* const here = interpreter::current();
    if (here == nullptr || !read_arrow_keywords(method, on_any_device, args, positional, names))
        return nullptr;
    acquired room;
    const tensor_ref* const t = s.read(self, room);
    if (t == nullptr || !can_leave_by_arrow(*t, on_any_device) || !finish_work(*t, s.lends)) return nullptr;
    const ref schema = make_arrow_schema(*t);
    if (!schema) return nullptr;
    const char* const name =
        on_any_device ? arrow::capsule_name<abi::arrow_device_array> : arrow::capsule_name<abi::arrow_array>;
    // An array on a device begins with the plain one. There is no event: the data is complete.
    const auto fill = [&](abi::arrow_device_array& out) {
        out.device_type = t->device().type;
        out.device_id = t->device().is_cpu() ? -1 : t->device().id;
        keep_alive owner = keep_object(self, here);
        return tenon::arrow::make_array(*t, address_of(*t), owner, out.array);
    };
    const ref array = make_arrow_capsule<abi::arrow_device_array>(name, fill);
    return array ? PyTuple_Pack(2, schema.get(), array.get()) : nullptr;
}

TENON_INLINE PyObject* answer::arrow_schema(source s, PyObject* self, PyObject*) noexcept {
    acquired room;
    const tensor_ref* const t = s.read(self, room);
    return t != nullptr && can_leave_by_arrow(*t, true) ? make_arrow_schema(*t).release() : nullptr;
}

TENON_INLINE PyObject* answer::arrow_array(source s, PyObject* self, PyObject* const* args,
                                           Py_ssize_t positional, PyObject* names) noexcept {
    return answer_arrow(false, s, self, args, positional, names);
}
TENON_INLINE PyObject* answer::arrow_device_array(source s, PyObject* self, PyObject* const* args,
                                                  Py_ssize_t positional, PyObject* names) noexcept {
    return answer_arrow(true, s, self, args, positional, names);
}

}  // namespace tenon::py::detail
