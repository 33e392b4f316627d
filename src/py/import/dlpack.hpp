// src/py/import/dlpack.hpp: the rung that calls `__dlpack__`, in the dialect the producer understands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <tenon/py/acquired.hpp>
#include <tenon/py/import.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/value/device.hpp>
#include <tenon/value/dtype_names.hpp>
#include "../../gpu/cuda_driver.hpp"
#include "../../gpu/stream_order.hpp"
#include "../../gpu/until_done.hpp"
#include "../library/current_stream.hpp"
#include "../runtime/call.hpp"
#include "../runtime/driver.hpp"
#include "../runtime/exceptions.hpp"
#include "../runtime/interpreter.hpp"
#include "../runtime/keep.hpp"
#include "capsule.hpp"
#include "plan_cache.hpp"
#include "protocol_method.hpp"
#include "rung.hpp"
#include "stream.hpp"
#include "type_plan.hpp"

namespace tenon::py::dlpack {

inline void probe(PyTypeObject* type, const interpreter& names, type_plan& plan) noexcept {
    plan.dlpack = place_of(type, names.dlpack);
    plan.dlpack_device = place_of(type, names.dlpack_device);
}

namespace detail {

/// `__dlpack_device__` as a device; only a hint, but one that must not contradict the tensor (F47).
[[nodiscard]] inline rung_result stated_device(PyObject* obj, const type_plan& plan, const interpreter& names,
                                               std::optional<device>& out, error& why) noexcept {
    PyObject* args[2] = {nullptr, obj};
    bool found = false;
    const ref answer =
        call_protocol_method(plan.dlpack_device, names.dlpack_device, args + 1, nullptr, found);
    if (!answer) return found || PyErr_Occurred() != nullptr ? rung_result::raised : rung_result::taken;
    if (!PyTuple_Check(answer.get()) || PyTuple_GET_SIZE(answer.get()) != 2) {
        why = malformed("__dlpack_device__", "it did not return a pair of integers");
        return rung_result::refused;
    }
    std::int32_t parts[2];
    for (Py_ssize_t i = 0; i < 2; ++i) {
        // The kind is often an Enum; an IntEnum or any __index__ is an integer here.
        const ref number = ref::take(call::index(PyTuple_GET_ITEM(answer.get(), i)));
        const long value = number ? PyLong_AsLong(number.get()) : -1;
        if (PyErr_Occurred() != nullptr || value != static_cast<std::int32_t>(value)) {
            if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_TypeError) == 0 &&
                PyErr_ExceptionMatches(PyExc_OverflowError) == 0)
                return rung_result::raised;
            PyErr_Clear();
            why = malformed("__dlpack_device__", "it did not return a pair of integers");
            return rung_result::refused;
        }
        parts[i] = static_cast<std::int32_t>(value);
    }
    out = device{parts[0], parts[1]};
    return rung_result::taken;
}

/// The keyword arguments of one call, in vectorcall form.
class keyword_arguments {
public:
    keyword_arguments(PyObject* self, const interpreter& names) noexcept : names_(names) { args_[1] = self; }

    /// `value` is a new reference; false when it is null.
    [[nodiscard]] bool add(PyObject* name, PyObject* value) noexcept {
        values_[count_] = ref::take(value);
        if (value == nullptr) return false;
        keys_[count_] = name;
        args_[2 + count_] = value;
        ++count_;
        return true;
    }
    [[nodiscard]] ref run(attribute_place place, bool& found) noexcept {
        ref keywords;
        if (count_ == 1 && keys_[0] == names_.max_version) {
            keywords = ref::borrow(names_.only_max_version);
        } else if (count_ == 1 && keys_[0] == names_.stream) {
            keywords = ref::borrow(names_.only_stream);
        } else if (count_ > 0) {
            keywords = ref::take(PyTuple_New(static_cast<Py_ssize_t>(count_)));
            if (!keywords) {
                found = true;
                return {};
            }
            for (std::size_t i = 0; i < count_; ++i) {
                Py_INCREF(keys_[i]);
                PyTuple_SET_ITEM(keywords.get(), static_cast<Py_ssize_t>(i), keys_[i]);
            }
        }
        return call_protocol_method(place, names_.dlpack, args_ + 1, keywords.get(), found);
    }

private:
    static constexpr std::size_t most = 4;
    const interpreter& names_;
    PyObject* args_[2 + most] = {};  // [0] is scratch the callee may use, [1] the object
    PyObject* keys_[most] = {};
    ref values_[most];
    std::size_t count_ = 0;
};

/// Which keywords a call carries.
struct call_shape {
    bool modern;  ///< max_version, dl_device and copy may be passed
    bool stream;  ///< the stream is passed, where the device has any
    bool copy;    ///< copy is passed, if the caller said anything of it
    bool device;  ///< dl_device is passed, if the data is said to be elsewhere than it is wanted
};

[[nodiscard]] inline ref call_dlpack(PyObject* obj, const type_plan& plan, const interpreter& names,
                                     const import_options& options, std::optional<device> where,
                                     call_shape shape, bool& found) noexcept {
    keyword_arguments given(obj, names);
    bool ok = true;
    if (shape.modern) {
        Py_INCREF(names.our_version);
        ok = given.add(names.max_version, names.our_version);
        // A device is asked for only when the data is not said to be there already.
        if (ok && shape.device && options.to && !(where && *where == *options.to))
            ok = given.add(names.dl_device, Py_BuildValue("(ii)", options.to->type, options.to->id));
        if (ok && shape.copy && options.copy)
            ok = given.add(names.copy, PyBool_FromLong(*options.copy ? 1 : 0));
    }
    if (ok && shape.stream) {
        const auto to = shape.device ? options.to : std::nullopt;
        if (const auto number = stream_argument(where, to, options.stream))
            ok = given.add(names.stream, PyLong_FromSsize_t(static_cast<Py_ssize_t>(*number)));
    }
    if (!ok) {
        found = true;
        return {};
    }
    return given.run(plan.dlpack, found);
}

/// Remembers how the type wants to be called, if the plan the call was made by is still there (an object may
/// change its class meanwhile).
inline void remember_dialect(PyObject* obj, const type_plan& used, dlpack_dialect dialect) noexcept {
    type_plan* const plan = find_plan_of(obj);
    if (plan == nullptr || plan->type != used.type || plan->tag != used.tag) return;
    plan->dialect = dialect;
    remember_plan(*plan);  // for the other threads, too
}

/// Memory that the driver here can copy.
[[nodiscard]] inline bool is_gpu(device where) noexcept {
    return where.has_streams() && gpu::driver::of(where) != nullptr;
}

/// The capsule, asked for once, or twice when the first call met a producer that does not know the keywords.
[[nodiscard]] inline ref request_capsule(PyObject* obj, const type_plan& plan, const interpreter& names,
                                         const import_options& options, std::optional<device> where,
                                         bool& found) noexcept {
    call_shape shape{plan.dialect != dlpack_dialect::ancient, true, true, true};
    ref capsule = call_dlpack(obj, plan, names, options, where, shape, found);
    if (!found) return {};
    if (capsule) {
        if (plan.dialect == dlpack_dialect::unknown) remember_dialect(obj, plan, dlpack_dialect::modern);
        return capsule;
    }
    // TypeError itself means "unknown keyword" from an old producer (and anything at all from a careless
    // one); RuntimeError is TensorFlow's answer to a stream. A copy that the producer will not make, of
    // memory that can be reached from here, we make ourselves. One step back, then the producer has had its
    // say.
    if (PyErr_ExceptionMatches(PyExc_RecursionError) != 0) return {};  // no word about the call
    const bool has_stream = stream_argument(where, options.to, options.stream).has_value();
    const bool unknown_keyword =
        plan.dialect == dlpack_dialect::unknown && PyErr_Occurred() == PyExc_TypeError;
    if (unknown_keyword)
        shape.modern = false;
    else if (options.wants_host() && options.copy != false && where && is_gpu(*where) &&
             PyErr_ExceptionMatches(PyExc_Exception) != 0)
        shape.device = shape.copy = false;
    else if (options.copy == true && where && (where->is_host_accessible() || is_gpu(*where)) &&
             PyErr_ExceptionMatches(PyExc_Exception) != 0)
        shape.copy = false;
    else if (has_stream && PyErr_ExceptionMatches(PyExc_RuntimeError) != 0)
        shape.stream = false;
    else
        return {};
    ref first = pending_exception();
    capsule = call_dlpack(obj, plan, names, options, where, shape, found);
    if (!capsule)
        chain_behind(std::move(first));
    else if (unknown_keyword)
        remember_dialect(obj, plan, dlpack_dialect::ancient);
    return capsule;
}

/// TensorFlow ends the process when `__dlpack__` meets an element type DLPack lacks (strings, resources): its
/// dtype is asked first.
[[nodiscard]] inline rung_result check_dtype_name(PyObject* obj, error& why) noexcept {
    const ref type = ref::take(call::attr(obj, "dtype"));
    const ref name = type ? ref::take(call::attr(type.get(), "name")) : ref();
    if (!name) return rung_result::raised;
    const char* const text = PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : "";
    if (text == nullptr) return rung_result::raised;
    if (dtype_from_name(text)) return rung_result::taken;
    why = refused("dtype", "not an element type DLPack can express");
    return rung_result::refused;
}

/// Takes over what a capsule holds, and lets the capsule go.
[[nodiscard]] inline rung_result take_and_drop(ref capsule, const type_plan& plan,
                                               const import_options& options, interpreter& here,
                                               acquired& out, error& why) noexcept {
    if (!PyCapsule_CheckExact(capsule.get())) {
        why = malformed("__dlpack__", "it did not return a capsule");
        return rung_result::refused;
    }
    import_options told = options;
    if (options.wants_host()) told.to.reset();  // what cannot be brought to the host may be fetched from here
    if (plan.immutable) told.trust_legacy = false;
    // What was made for us alone is taken over and released; what the producer keeps for later is left to it.
    const bool only_look = out.looking && Py_REFCNT(capsule.get()) > 1;
    const rung_result taken = take_capsule(capsule.get(), told, &here, out, why, {}, only_look);
    {
        const error_guard guard;  // a capsule's destructor may leave an exception behind
        capsule = ref();
    }
    if (taken == rung_result::taken && plan.immutable) out.mark_read_only();
    return taken;
}

/// Notes the stream that the tensor is ready on: the one its library works on, if that was asked for nothing,
/// else the consumer's, which waits for it.
[[nodiscard]] inline rung_result note_stream(bool asks_library, const type_plan& plan,
                                             const import_options& options, acquired& out) noexcept {
    const device where = out.device();
    if (!where.is_cuda_memory() && !where.is_rocm()) return rung_result::taken;
    const auto fail = [&] {
        const error_guard guard;
        out.owner.reset();
        return rung_result::raised;
    };
    if (!asks_library) {
        // Memory that is the host's as well is asked for without a stream, and ready on the default one.
        if (options.orders() && !where.has_streams() && !py::detail::succeeded(py::detail::without_gil([&] {
                return gpu::order(where, nullptr, options.stream_handle());
            })))
            return fail();
        if (options.orders()) out.set_stream(options.stream_handle());
        // The producer works on a stream that it does not name: it gets its memory back when ours is done, be
        // it lent for a call alone, which may have queued work.
        if (!out.looking) out.owner = gpu::released_late(std::move(out.owner), where);
        return rung_result::taken;
    }
    return note_current_stream(plan.stream_of, out) ? rung_result::taken : fail();
}

/// What is known of the type by now, if the plan the call was made by is still there.
inline void remember_cuda(PyObject* obj, const type_plan& used, bool on_cuda) noexcept {
    type_plan* const plan = find_plan_of(obj);
    if (plan == nullptr || plan->type != used.type || plan->tag != used.tag) return;
    plan->on_cuda = on_cuda;
    plan->direct = on_cuda ? direct_way::plain_dlpack : direct_way::none;
}

/// For libraries that are best asked with the stream alone, objects on CUDA. `absent` when this one is not,
/// or does not answer so: then it is asked as any other.
[[nodiscard]] inline rung_result take_plainly(PyObject* obj, const type_plan& plan,
                                              const import_options& options, interpreter& here, acquired& out,
                                              error& why) noexcept {
    const bool asks_library = plan.stream_of != nullptr && !options.stream;
    keyword_arguments given(obj, here);
    bool found = false;
    ref capsule;
    if (given.add(here.stream, PyLong_FromSsize_t(asks_library ? -1 : options.stream.value_or(1))))
        capsule = given.run(plan.dlpack, found);
    if (!capsule) {
        if (PyErr_Occurred() != nullptr && is_no_answer_pending()) return rung_result::raised;
        PyErr_Clear();
        if (!asks_library) remember_cuda(obj, plan, false);
        return rung_result::absent;
    }
    import_options told = options;
    told.trust_legacy = true;  // whether its arrays can be written to is known
    const rung_result taken = take_and_drop(std::move(capsule), plan, told, here, out, why);
    return taken == rung_result::taken ? note_stream(asks_library, plan, options, out) : taken;
}

}  // namespace detail

/// The quick way, where there is one.
using detail::take_plainly;

/// Calls `__dlpack_device__` and `__dlpack__` and takes the capsule over. `plan` is the caller's own copy:
/// foreign code runs.
[[nodiscard]] inline rung_result take(PyObject* obj, const type_plan& plan, const import_options& options,
                                      interpreter& here, acquired& out, error& why) noexcept {
    if (plan.dtype_first) {
        if (const auto known = detail::check_dtype_name(obj, why); known != rung_result::taken) return known;
    }
    if (plan.on_cuda && !options.to && !options.copy &&
        check_stream_number({abi::device_code::cuda, 0}, options.stream)) {
        const rung_result taken = detail::take_plainly(obj, plan, options, here, out, why);
        if (taken != rung_result::absent) return taken;
    }
    std::optional<device> where;
    if (const auto known = detail::stated_device(obj, plan, here, where, why); known != rung_result::taken)
        return known;
    if (where && where->has_streams()) {
        if (auto ok = check_stream_number(*where, options.stream); !ok) {
            why = ok.error();
            return rung_result::refused;
        }
    }
    // A library that says which stream it works on is not made to wait for it on another.
    const bool asks_library =
        plan.stream_of != nullptr && !options.stream && !options.wants_host() && where && where->is_cuda();
    import_options asked = options;
    if (asks_library) asked.stream = -1;
    bool found = false;
    ref capsule = detail::request_capsule(obj, plan, here, asked, where, found);
    if (!capsule) return found || PyErr_Occurred() != nullptr ? rung_result::raised : rung_result::absent;
    const rung_result taken = detail::take_and_drop(std::move(capsule), plan, asked, here, out, why);
    if (taken != rung_result::taken) return taken;
    // What was asked to be moved may well be elsewhere than it was; otherwise the two must agree.
    if (!options.to && where && *where != out.device() &&
        !(where->is_host_accessible() && out.device().is_host_accessible())) {
        why =
            malformed("device", "__dlpack_device__ says another device than the tensor itself", where->type);
        out.owner.reset();
        return rung_result::refused;
    }
    if (plan.plain_call && out.device().is_cuda()) detail::remember_cuda(obj, plan, true);
    return detail::note_stream(asks_library, plan, options, out);
}

}  // namespace tenon::py::dlpack
