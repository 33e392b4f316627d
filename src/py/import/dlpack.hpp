// src/py/import/dlpack.hpp: the rung that calls `__dlpack__`, in the dialect the producer understands, and
// the one for a bare capsule.
#pragma once

#include "placing.hpp"

namespace tenon::py::dlpack {

/// Validates what the capsule holds, renames it, owns it: in this order, so that a capsule that is refused
/// stays alive with its producer and one that is taken cannot be taken again. No Python code runs in between.
/// `only_look`: the capsule stays as it was, and nothing keeps the memory.
[[nodiscard]] inline outcome take_capsule(PyObject* capsule, const import_options& options, bool writable,
                                          bool only_look, interpreter& home, acquired& out) noexcept {
    const critical_section alone(capsule);
    const char* const name = PyCapsule_GetName(capsule);
    const auto is_named = [&](const char* expected) {
        return name != nullptr && std::strcmp(name, expected) == 0;
    };
    const bool versioned = is_named(capsule_versioned);
    if (!versioned && !is_named(capsule_legacy)) {
        PyErr_Clear();  // an invalid capsule sets one when asked for its name
        if (is_named(capsule_used_legacy) || is_named(capsule_used_versioned))
            return refused("capsule", "it has been consumed already")
                .with_advice("a capsule can be imported once; ask the producer for a new one");
        return refused("capsule", "its name is not that of a DLPack capsule")
            .with_advice("expected \"dltensor\" or \"dltensor_versioned\"");
    }
    void* const managed = PyCapsule_GetPointer(capsule, name);
    if (managed == nullptr) {
        PyErr_Clear();
        return malformed("capsule", "it holds a null pointer");
    }

    const auto seen = foreign::describe(managed, versioned);
    if (!seen) return seen.error();
    if (!options.is_met_by(device(seen->tensor.device)))
        return detail::elsewhere(device(seen->tensor.device), options);
    const bool is_trusted = versioned || options.trust_legacy;
    const std::uint64_t flags = is_trusted ? seen->flags : seen->flags | abi::flag::read_only;
    if (auto ok = out.admit({seen->tensor, flags, seen->version}); !ok) return ok;
    out.add_marks(versioned ? tenon::detail::marks_of(static_cast<abi::managed_tensor_versioned*>(managed))
                            : tenon::detail::marks_of(static_cast<abi::managed_tensor*>(managed)));
    // Whoever handed it out as a legacy struct lets others have it so; but what a caller trusts to be
    // writable, and makes read-only, stays read-only.
    if (!is_trusted) out.allow_legacy();
    if (only_look) return outcome::taken;
    if (options.copy == false && out.is_copied())
        return refused("flags", "copy=False was asked for and the producer made a copy");
    if (auto met = check(out, {.writable = writable}); !met) return met;
    if (PyCapsule_SetName(capsule, versioned ? capsule_used_versioned : capsule_used_legacy) != 0)
        return outcome::raised;
    out.owner = detail::keep_managed(managed, versioned, &home);
    return outcome::taken;
}

/// The rung for a bare capsule handed over in place of an array. One that is refused, also for being
/// read-only where `writable` is asked for, stays usable for somebody else.
[[nodiscard]] inline outcome take_bare_capsule(attempt& a) noexcept {
    // A copy is writable, whatever it is made of.
    const bool writable = a.writable && a.options.copy != true;
    return take_capsule(a.obj, a.options, writable, a.out.looking, a.here, a.out);
}

/// `__dlpack_device__` as a device; only a hint, but one that must not contradict the tensor (F47).
[[nodiscard]] inline outcome stated_device(const attempt& a, std::optional<device>& out) noexcept {
    bool found = false;
    const ref answer = call_protocol_method(a.plan.dlpack_device, a.here.dlpack_device, a.obj, found);
    if (!answer) return found || PyErr_Occurred() != nullptr ? outcome::raised : outcome::taken;
    static constexpr const char* no_pair = "it did not return a pair of integers";
    if (!PyTuple_Check(answer.get()) || PyTuple_GET_SIZE(answer.get()) != 2)
        return malformed("__dlpack_device__", no_pair);
    std::int32_t parts[2];
    for (Py_ssize_t i = 0; i < 2; ++i) {
        // The kind is often an Enum; an IntEnum or any __index__ is an integer here.
        const ref number = ref::take(call::index(PyTuple_GET_ITEM(answer.get(), i)));
        const long value = number ? PyLong_AsLong(number.get()) : -1;
        parts[i] = static_cast<std::int32_t>(value);
        if (PyErr_Occurred() != nullptr || value != parts[i])
            return detail::field_failed("__dlpack_device__", no_pair);
    }
    out = device{parts[0], parts[1]};
    return outcome::taken;
}

/// The number to pass, or nullopt to pass none. Host memory has no streams, and a copy to the host is
/// synchronised by the producer. An accelerator's consumer always says its stream: what `None` means differs
/// between libraries. Without one of its own it names the default stream: 1 on CUDA, 0 on ROCm.
[[nodiscard]] inline std::optional<std::intptr_t> stream_argument(std::optional<device> producer,
                                                                  const import_options& options) noexcept {
    if (options.to && options.to->is_host_accessible()) return std::nullopt;
    if (producer && producer->has_streams()) return options.stream.value_or(producer->is_cuda() ? 1 : 0);
    // A device of unknown stream rules: only what the caller said.
    return producer && producer->is_host_accessible() ? std::nullopt : options.stream;
}

/// `where` is the device that the producer states, `options` what it is to be told: in the `modern` dialect
/// all of it, else the stream alone.
[[nodiscard]] inline ref call_dlpack(const attempt& a, const import_options& options,
                                     std::optional<device> where, bool modern, bool with_stream,
                                     bool& found) noexcept {
    static constexpr std::size_t most = 4;
    const interpreter& names = a.here;
    PyObject* args[2 + most] = {nullptr, a.obj};  // the first is scratch the callee may use
    PyObject* keys[most] = {};
    ref there, number;  // what is made for this call; the others stay
    std::size_t count = 0;
    bool failed = false;
    const auto add = [&](PyObject* name, PyObject* value) {
        failed |= value == nullptr;
        keys[count] = name;
        args[2 + count++] = value;
    };
    if (modern) {
        add(names.max_version, names.our_version);
        // A device is asked for only when the data is not said to be there already.
        if (options.to && where != options.to) {
            there = ref::take(Py_BuildValue("(ii)", options.to->type, options.to->id));
            add(names.dl_device, there.get());
        }
        if (options.copy) add(names.copy, *options.copy ? Py_True : Py_False);
    }
    if (const auto stream = with_stream ? stream_argument(where, options) : std::nullopt) {
        number = ref::take(PyLong_FromSsize_t(static_cast<Py_ssize_t>(*stream)));
        add(names.stream, number.get());
    }

    found = true;
    ref keywords;
    if (count == 1) {
        keywords = ref::borrow(modern ? names.only_max_version : names.only_stream);
    } else if (count > 1) {
        keywords = ref::take(PyTuple_New(static_cast<Py_ssize_t>(count)));
        for (std::size_t i = 0; keywords && i < count; ++i)
            PyTuple_SET_ITEM(keywords.get(), static_cast<Py_ssize_t>(i), ref::borrow(keys[i]).release());
        failed |= !keywords;
    }
    return failed ? ref()
                  : call_protocol_method(a.plan.dlpack, names.dlpack, args + 1, keywords.get(), found);
}

/// Memory that the driver here can copy.
[[nodiscard]] inline bool is_gpu(device where) noexcept {
    return where.has_streams() && gpu::driver::of(where) != nullptr;
}

/// The capsule, asked for once, or twice when the first call met a producer that does not know the keywords.
[[nodiscard]] inline ref request_capsule(const attempt& a, import_options options,
                                         std::optional<device> where, bool& found) noexcept {
    const dlpack_dialect dialect = a.plan.route.dialect;
    const auto speaks = [&](dlpack_dialect known) { learn(a, [&](route& r) { r.dialect = known; }); };
    bool modern = dialect != dlpack_dialect::ancient;
    ref capsule = call_dlpack(a, options, where, modern, true, found);
    if (capsule && dialect == dlpack_dialect::unknown) speaks(dlpack_dialect::modern);
    if (capsule || !found) return capsule;
    // TypeError itself means "unknown keyword" from an old producer (and anything at all from a careless
    // one); RuntimeError is TensorFlow's answer to a stream. A copy that the producer will not make, of
    // memory that can be reached from here, we make ourselves. One step back, then the producer has had its
    // say.
    if (PyErr_ExceptionMatches(PyExc_RecursionError) != 0) return {};  // no word about the call
    const bool is_answer = PyErr_ExceptionMatches(PyExc_Exception) != 0;
    const bool has_stream = stream_argument(where, options).has_value();
    bool with_stream = true;
    const bool unknown_keyword = dialect == dlpack_dialect::unknown && PyErr_Occurred() == PyExc_TypeError;
    if (unknown_keyword) {
        modern = false;
    } else if (is_answer && options.wants_host() && options.copy != false && where && is_gpu(*where)) {
        options.to.reset();
        options.copy.reset();
    } else if (is_answer && options.copy == true && where &&
               (where->is_host_accessible() || is_gpu(*where))) {
        options.copy.reset();
    } else if (has_stream && PyErr_ExceptionMatches(PyExc_RuntimeError) != 0) {
        with_stream = false;
    } else {
        return {};
    }
    ref first = pending_exception();
    capsule = call_dlpack(a, options, where, modern, with_stream, found);
    if (!capsule)
        chain_behind(std::move(first));
    else if (unknown_keyword)
        speaks(dlpack_dialect::ancient);
    return capsule;
}

/// TensorFlow ends the process when `__dlpack__` meets an element type DLPack lacks (strings, resources): its
/// dtype is asked first.
[[nodiscard]] inline outcome check_dtype_name(PyObject* obj) noexcept {
    const ref type = ref::take(call::attr(obj, "dtype"));
    const ref name = type ? ref::take(call::attr(type.get(), "name")) : ref();
    if (!name) return outcome::raised;
    const char* const text = PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : "";
    if (text == nullptr) return outcome::raised;
    if (dtype_from_name(text)) return outcome::taken;
    return refused("dtype", "not an element type DLPack can express");
}

/// Takes over what a capsule holds, and lets the capsule go.
[[nodiscard]] inline outcome take_and_drop(attempt& a, ref capsule, import_options told) noexcept {
    if (!PyCapsule_CheckExact(capsule.get())) return malformed("__dlpack__", "it did not return a capsule");
    if (told.wants_host()) told.to.reset();  // what cannot be brought to the host may be fetched from here
    if (a.plan.immutable) told.trust_legacy = false;
    // What was made for us alone is taken over and released; what the producer keeps for later is left to it.
    const bool only_look = a.out.looking && Py_REFCNT(capsule.get()) > 1;
    const outcome got = take_capsule(capsule.get(), told, false, only_look, a.here, a.out);
    {
        const error_guard guard;  // a capsule's destructor may leave an exception behind
        capsule = ref();
    }
    if (got == outcome::taken && a.plan.immutable) a.out.mark_read_only();
    return got;
}

/// Notes the stream that the tensor is ready on: the one its library works on, if that was asked for nothing,
/// else the consumer's, which waits for it.
[[nodiscard]] inline outcome note_stream(attempt& a, bool asks_library) noexcept {
    acquired& out = a.out;
    const device where = out.device();
    if (!where.is_cuda_memory() && !where.is_rocm()) return outcome::taken;
    const auto fail = [&] {
        const error_guard guard;
        out.owner.reset();
        return outcome::raised;
    };
    if (asks_library) return note_current_stream(a.plan.stream_of, false, out) ? outcome::taken : fail();
    // Memory that is the host's as well is asked for without a stream, and ready on the default one.
    const bool orders = a.options.orders();
    if (orders && !where.has_streams() && !detail::succeeded(detail::without_gil([&] {
            return gpu::order(where, nullptr, a.options.stream_handle());
        })))
        return fail();
    if (orders) out.set_stream(a.options.stream_handle());
    // The producer works on a stream that it does not name: it gets its memory back when ours is done, be
    // it lent for a call alone, which may have queued work.
    if (!out.looking) out.owner = gpu::released_late(std::move(out.owner), where);
    return outcome::taken;
}

/// For libraries that are best asked with the stream alone, objects on CUDA. `absent` when this one is not,
/// or does not answer so: then it is asked as any other.
[[nodiscard]] inline outcome take_by_stream_alone(attempt& a) noexcept {
    const bool asks_library = a.plan.stream_of != nullptr && !a.options.stream;
    import_options told = a.options;
    if (asks_library) told.stream = -1;
    bool found = false;
    ref capsule = call_dlpack(a, told, device{abi::device_code::cuda, 0}, false, true, found);
    if (!capsule) {
        if (PyErr_Occurred() != nullptr && is_no_answer_pending()) return outcome::raised;
        PyErr_Clear();
        if (!asks_library) learn(a, [](route& r) { r.on_cuda = false; });
        return outcome::absent;
    }
    told.trust_legacy = true;  // whether its arrays can be written to is known
    const outcome got = take_and_drop(a, std::move(capsule), told);
    return got == outcome::taken ? note_stream(a, asks_library) : got;
}

/// Calls `__dlpack_device__` and `__dlpack__` and takes the capsule over.
[[nodiscard]] inline outcome take(attempt& a) noexcept {
    if (a.plan.dlpack == attribute_place::nowhere) return outcome::absent;
    if (a.plan.library != nullptr && a.plan.library->dtype_first) {
        if (const outcome known = check_dtype_name(a.obj); known != outcome::taken) return known;
    }
    const import_options& options = a.options;
    if (a.plan.route.on_cuda && !options.to && !options.copy &&
        check_stream_number({abi::device_code::cuda, 0}, options.stream)) {
        const outcome got = take_by_stream_alone(a);
        if (got != outcome::absent) return got;
    }
    std::optional<device> where;
    if (const outcome known = stated_device(a, where); known != outcome::taken) return known;
    if (where && where->has_streams()) {
        if (auto ok = check_stream_number(*where, options.stream); !ok) return ok;
    }
    // A library that says which stream it works on is not made to wait for it on another.
    const bool asks_library =
        a.plan.stream_of != nullptr && !options.stream && !options.wants_host() && where && where->is_cuda();
    import_options asked = options;
    if (asks_library) asked.stream = -1;
    bool found = false;
    ref capsule = request_capsule(a, asked, where, found);
    if (!capsule) return found || PyErr_Occurred() != nullptr ? outcome::raised : outcome::absent;
    const outcome got = take_and_drop(a, std::move(capsule), asked);
    if (got != outcome::taken) return got;
    // What was asked to be moved may well be elsewhere than it was; otherwise the two must agree.
    if (!options.to && where && *where != a.out.device() &&
        !(where->is_host_accessible() && a.out.device().is_host_accessible()))
        return a.give_up(
            malformed("device", "__dlpack_device__ says another device than the tensor itself", where->type));
    if (a.plan.stream_alone && a.out.device().is_cuda()) learn(a, [](route& r) { r.on_cuda = true; });
    return note_stream(a, asks_library);
}

}  // namespace tenon::py::dlpack
