// src/py/import/arrow.hpp: the rung for Arrow's C data, device and stream interfaces: one array of numbers,
// or of fixed-size lists of them, without nulls.
#pragma once

#include <tenon/py/import.hpp>
#include "../library/all.hpp"
#include "arrow_capsule.hpp"
#include "attempt.hpp"
#include "outcome.hpp"
#include "protocol_method.hpp"

namespace tenon::py::arrow {

namespace layout = tenon::arrow;

inline void probe(PyTypeObject* type, const interpreter& names, type_plan& plan) noexcept {
    plan.arrow_array = place_of(type, names.arrow_array);
    plan.arrow_device_array = place_of(type, names.arrow_device_array);
    plan.arrow_stream = place_of(type, names.arrow_stream);
}

/// Whether the type itself says that its objects are arrays of Arrow's, so that asking them looks at no
/// attribute in vain.
[[nodiscard]] inline bool is_declared(const type_plan& plan) noexcept {
    return plan.arrow_array == attribute_place::method ||
           plan.arrow_device_array == attribute_place::method || plan.arrow_stream == attribute_place::method;
}

/// Whether the pending exception says "not in this way", rather than that something broke.
[[nodiscard]] inline bool is_refusal_pending() noexcept {
    for (PyObject* kind : {PyExc_TypeError, PyExc_ValueError, PyExc_BufferError, PyExc_NotImplementedError})
        if (PyErr_ExceptionMatches(kind) != 0) return true;
    return false;
}

namespace detail {

/// A struct's own release, once. One that throws has broken the rules of its C interface; there is nobody to
/// tell.
template <class Struct>
void call_release(Struct& s) noexcept try {
    if (s.release != nullptr) foreign_code([&] { s.release(&s); });
    s.release = nullptr;
} catch (...) {
    s.release = nullptr;
}

/// A struct that a producer filled, or gave up, released when the scope ends unless it is moved on.
template <class Struct>
class received {
public:
    received() noexcept = default;
    received(const received&) = delete;
    received& operator=(const received&) = delete;
    ~received() { release(); }

    void release() noexcept {
        if (held.release == nullptr) return;
        const error_guard keep;  // the producer's code runs, and may not see what is pending
        call_release(held);
    }
    /// Moves it out of the producer's place: whoever looks there afterwards sees that it is gone.
    void take(Struct& from) noexcept {
        held = from;
        from.release = nullptr;
    }

    Struct held = {};
};

/// An imported array has to be released by its interpreter, as it may be made of Python objects (F15-F19).
inline void release_array(void* subject, void* home) noexcept {
    static_cast<interpreter*>(home)->enter([&] {
        auto* const array = static_cast<abi::arrow_array*>(subject);
        call_release(*array);
        std::free(array);
    });
}

/// Describes the elements in `out`; takes nothing over.
[[nodiscard]] inline result<void> admit(const layout::item_type& type, const layout::elements& found,
                                        device where, acquired& out) noexcept {
    const std::int32_t rank = layout::fill_axes(type, found.length, out.storage);
    const abi::dl_tensor t{
        const_cast<void*>(found.data), where.to_abi(), rank, type.type.to_abi(), nullptr, nullptr, 0};
    return out.admit_stored(t, abi::flag::read_only);
}

/// Checks `array`, which `seen` is a copy of, and moves it out if it is sound and not only looked at. On
/// failure it is left as it was.
[[nodiscard]] inline outcome take_array(abi::arrow_array& array, const abi::arrow_array& seen,
                                        const layout::item_type& type, device where, bool readable,
                                        bool only_look, interpreter& here, acquired& out) noexcept {
    const auto found = layout::find_elements(seen, type, readable);
    if (!found) {
        return found.error();
    }
    if (auto ok = admit(type, *found, where, out); !ok) {
        return ok.error();
    }
    if (only_look) return outcome::taken;
    auto* const kept = static_cast<abi::arrow_array*>(std::malloc(sizeof(abi::arrow_array)));
    if (kept == nullptr) {
        PyErr_NoMemory();
        return outcome::raised;
    }
    *kept = seen;
    array.release = nullptr;
    out.owner = keep_alive(kept, release_array, &here, owner_kind::arrow);
    return outcome::taken;
}

/// Whether capsules must stay as they are, because somebody looks at what the producer keeps for later.
[[nodiscard]] inline bool must_stay(const acquired& out, const ref& pair) noexcept {
    return out.looking && (Py_REFCNT(pair.get()) > 1 || Py_REFCNT(PyTuple_GET_ITEM(pair.get(), 1)) > 1);
}

/// The answer of `method()` as its two capsules; otherwise refused.
template <class Array>
struct capsule_pair {
    abi::arrow_schema* schema = nullptr;
    Array* array = nullptr;

    [[nodiscard]] result<void> read(PyObject* answer) noexcept {
        if (!PyTuple_CheckExact(answer) || PyTuple_GET_SIZE(answer) != 2)
            return malformed("Arrow", "the method did not return a pair of capsules");
        PyObject* const first = PyTuple_GET_ITEM(answer, 0);
        PyObject* const second = PyTuple_GET_ITEM(answer, 1);
        if (!PyCapsule_CheckExact(first) || !PyCapsule_CheckExact(second))
            return malformed("Arrow", "the method did not return a pair of capsules");
        schema = struct_in<abi::arrow_schema>(first);
        array = struct_in<Array>(second);
        if (schema == nullptr)
            return malformed("Arrow", "the first capsule of the pair is not named \"arrow_schema\"");
        if (array == nullptr)
            return malformed("Arrow", std::is_same_v<Array, abi::arrow_array>
                                          ? "the second capsule of the pair is not named \"arrow_array\""
                                          : "the second capsule of the pair is not named "
                                            "\"arrow_device_array\"");
        if (layout::detail::cannot_be(array)) return malformed("array", "the pointer cannot be an array");
        return {};
    }
};

/// Lets the producer's capsules go; what is left in them is released by their destructors.
inline void drop(ref& answer) noexcept {
    const error_guard keep;  // a destructor may leave an exception behind
    answer = ref();
}

[[nodiscard]] inline outcome take_host_pair(attempt& a, ref answer) noexcept {
    const auto take = [&]() -> outcome {
        capsule_pair<abi::arrow_array> given;
        layout::item_type type;
        if (auto ok = given.read(answer.get()); !ok) return ok;
        const critical_section alone(PyTuple_GET_ITEM(answer.get(), 1));
        if (auto ok = layout::read_type(given.schema, type); !ok) return ok;
        const abi::arrow_array seen = *given.array;
        return take_array(*given.array, seen, type, device{}, true, must_stay(a.out, answer), a.here, a.out);
    };
    const outcome got = take();
    drop(answer);
    return got;
}

/// Sees to it that the data is complete when the consumer gets to it: its stream waits for the event, or the
/// host does where it reads the memory itself.
[[nodiscard]] inline result<void> order_event(device where, void* event,
                                              std::optional<std::intptr_t> stream) noexcept {
    if (event == nullptr || stream == -1) return {};
    const bool on_host =
        where.type == abi::device_code::cuda_host || where.type == abi::device_code::cuda_managed;
    if (!where.is_cuda() && !on_host)
        return refused("sync_event", "an event of this device cannot be waited for here", where.type)
            .with_advice("synchronize first, and pass stream=-1");
    if (layout::detail::cannot_be(static_cast<void**>(event)))
        return malformed("sync_event", "the pointer cannot be an event");
    const std::intptr_t number = stream.value_or(1);
    if (!on_host && number <= 0)
        return refused("stream", "it is neither 1 (legacy default), 2 (per-thread default), -1 nor a handle",
                       number);
    void* const awaited = *static_cast<void**>(event);
    return py::detail::without_gil([&] {
        return on_host ? gpu::finish_event(where, awaited)
                       : gpu::order_after(where, awaited, reinterpret_cast<void*>(number));
    });
}

[[nodiscard]] inline outcome take_device_pair(attempt& a, ref answer) noexcept {
    const import_options& options = a.options;
    acquired& out = a.out;
    device where;
    void* event = nullptr;
    const auto take = [&]() -> outcome {
        capsule_pair<abi::arrow_device_array> given;
        layout::item_type type;
        if (auto ok = given.read(answer.get()); !ok) return ok;
        const critical_section alone(PyTuple_GET_ITEM(answer.get(), 1));
        if (auto ok = layout::read_type(given.schema, type); !ok) return ok;
        const abi::arrow_device_array seen = *given.array;
        const auto place = layout::read_device(seen);
        if (!place) return place.error();
        where = *place;
        event = seen.sync_event;
        if (!options.is_met_by(where))
            return refused("device", "the data is not on the device asked for", where.type,
                           options.to.value_or(device{}).type);
        return take_array(given.array->array, seen.array, type, where,
                          where.is_host_accessible() && event == nullptr, must_stay(out, answer), a.here,
                          out);
    };
    const outcome got = take();
    if (got == outcome::taken) {
        // It is ours by now, so that others may run meanwhile.
        if (auto ordered = order_event(where, event, options.stream); !ordered) {
            out.owner.reset();
            drop(answer);
            return ordered;
        }
        if (where.is_cuda() && options.stream && *options.stream > 0)
            out.set_stream(reinterpret_cast<void*>(*options.stream));
        // By its event the producer works on a stream, which it does not name: it gets its memory back when
        // our work is done.
        if (event != nullptr && options.stream != -1 && where.is_cuda() && out.owning && !out.looking)
            out.owner = gpu::released_late(std::move(out.owner), where);
    }
    drop(answer);
    return got;
}

/// The exception of a stream whose function has failed: the one it raised itself, else its errno and words.
TENON_COLD inline void stream_failed(abi::arrow_array_stream& stream, const char* function,
                                     int code) noexcept {
    if (PyErr_Occurred() != nullptr) return;
    static constexpr std::size_t longest = 2000;
    const char* told = nullptr;
    try {
        if (stream.get_last_error != nullptr)
            told = foreign_code([&] { return stream.get_last_error(&stream); });
    } catch (...) {  // NOLINT(bugprone-empty-catch): then there are no words
    }
    const bool is_text = told != nullptr && !tenon::detail::is_implausible(told);
    const std::size_t size = is_text ? strnlen(told, longest) : 0;
    const ref text = size != 0
                         ? ref::take(PyUnicode_DecodeUTF8(told, static_cast<Py_ssize_t>(size), "replace"))
                         : ref::take(PyUnicode_FromString("it does not say why"));
    if (!text) return;
    if (code == ENOMEM)
        PyErr_Format(PyExc_MemoryError, "tenon: %s of the Arrow stream: %U", function, text.get());
    else
        PyErr_Format(PyExc_BufferError, "tenon: %s of the Arrow stream failed with error %d: %U", function,
                     code, text.get());
}

/// Asks a stream for something, without the GIL: it may wait for threads that need it. True when it answered;
/// else an exception is set.
template <class Function, class Struct>
[[nodiscard]] bool ask_stream(abi::arrow_array_stream& stream, Function function, const char* name,
                              Struct& out) noexcept {
    PyThreadState* const released = PyEval_SaveThread();
    int code = EIO;
    try {
        code = foreign_code([&] { return function(&stream, &out); });
    } catch (...) {  // NOLINT(bugprone-empty-catch): a C function that throws has failed
    }
    foreign_code([&] { PyEval_RestoreThread(released); });
    if (code == 0 && PyErr_Occurred() == nullptr) return true;
    if (code != 0) out.release = nullptr;  // what is in it then is nobody's
    stream_failed(stream, name, code);
    return false;
}

/// The one chunk of a stream that has anything in it; `chunk.held` stays empty when none has.
[[nodiscard]] inline outcome only_chunk(abi::arrow_array_stream& stream,
                                        received<abi::arrow_array>& chunk) noexcept {
    static constexpr int most_empty = 1 << 16;
    for (int i = 0; i < most_empty; ++i) {
        received<abi::arrow_array> next;
        if (!ask_stream(stream, stream.get_next, "get_next", next.held)) return outcome::raised;
        if (next.held.release == nullptr) return outcome::taken;
        if (next.held.length == 0) continue;
        if (chunk.held.release != nullptr) {
            return refused("stream", "the data comes in several chunks, at least so many", 2, 1)
                .with_advice("put them together first (pyarrow: combine_chunks(), polars: rechunk())");
        }
        chunk.take(next.held);
    }
    return refused("stream", "it goes on and on with empty chunks", most_empty);
}

[[nodiscard]] inline outcome take_stream(attempt& a, ref answer) noexcept {
    received<abi::arrow_array_stream> stream;
    const auto read = [&]() -> result<void> {
        const critical_section alone(answer.get());
        auto* const given = struct_in<abi::arrow_array_stream>(answer.get());
        if (given == nullptr)
            return malformed("Arrow", "the method did not return a capsule named \"arrow_array_stream\"");
        if (layout::detail::cannot_be(given)) return malformed("stream", "the pointer cannot be a stream");
        const abi::arrow_array_stream seen = *given;
        if (seen.release == nullptr)
            return malformed("stream", "it has been released or taken already")
                .with_advice("a stream can be read once; ask the producer for a new one");
        if (seen.get_schema == nullptr || seen.get_next == nullptr)
            return malformed("stream", "a function of it is null");
        // Reading uses it up, so it is taken from the start: nobody may find half a stream.
        given->release = nullptr;
        stream.held = seen;
        return {};
    };
    const auto ok = read();
    drop(answer);
    if (!ok) return ok;

    layout::item_type type;
    {
        received<abi::arrow_schema> schema;
        if (!ask_stream(stream.held, stream.held.get_schema, "get_schema", schema.held))
            return outcome::raised;
        if (auto known = layout::read_type(&schema.held, type); !known) return known;
    }
    received<abi::arrow_array> chunk;
    if (const outcome got = only_chunk(stream.held, chunk); !(got == outcome::taken)) return got;
    if (chunk.held.release == nullptr) return admit(type, {}, device{}, a.out);
    const abi::arrow_array seen = chunk.held;
    return take_array(chunk.held, seen, type, device{}, true, false, a.here, a.out);
}

[[nodiscard]] inline ref ask(PyObject* obj, attribute_place place, PyObject* name, bool& found) noexcept {
    PyObject* args[2] = {nullptr, obj};  // the first is scratch the callee may use
    found = place != attribute_place::nowhere;
    if (!found) return {};
    return call_protocol_method(place, name, args + 1, nullptr, found);
}

/// `__arrow_c_device_array__`.
[[nodiscard]] inline outcome take_device(attempt& a) noexcept {
    bool found = false;
    ref answer = ask(a.obj, a.plan.arrow_device_array, a.here.arrow_device_array, found);
    if (answer) return take_device_pair(a, std::move(answer));
    return found || PyErr_Occurred() != nullptr ? outcome::raised : outcome::absent;
}

/// Whether the object has an array or a stream in host memory to give. None is asked for.
[[nodiscard]] inline bool is_on_host(PyObject* obj, const type_plan& plan,
                                     const interpreter& names) noexcept {
    const auto has = [&](attribute_place place, PyObject* name) {
        PyObject* found = nullptr;
        const bool there = place != attribute_place::nowhere && call::optional_attr(obj, name, &found) > 0;
        const ref dropped = ref::take(found);
        PyErr_Clear();
        return there && found != Py_None;
    };
    return has(plan.arrow_array, names.arrow_array) || has(plan.arrow_stream, names.arrow_stream);
}

}  // namespace detail

namespace detail {

/// Arrays on a device refuse to be had as the host's. If the other way does not lead anywhere, the exception
/// that is pending now is what was wrong.
[[nodiscard]] inline outcome try_device_instead(attempt& a) noexcept {
    ref first = pending_exception();
    const outcome got = take_device(a);
    if (got == outcome::taken || got == outcome::refused) return got;
    ref later = got == outcome::raised ? pending_exception() : ref();
    restore_exception(std::move(first));
    if (later) chain_behind(std::move(later));
    return outcome::raised;
}

}  // namespace detail

/// Asks for one array, in host memory if it can be, on a device if not, else for a stream of one chunk. What
/// Arrow lends is read-only.
[[nodiscard]] inline outcome take(attempt& a) noexcept {
    const type_plan& plan = a.plan;
    if (!a.host_will_do()) {
        const outcome got = detail::take_device(a);
        if (!(got == outcome::absent) || !detail::is_on_host(a.obj, plan, a.here)) return got;
        return refused("device", "the data is in host memory, and another device was asked for",
                       abi::device_code::cpu, a.options.to.value_or(device{}).type);
    }
    bool found = false;
    ref answer = detail::ask(a.obj, plan.arrow_array, a.here.arrow_array, found);
    if (answer) return detail::take_host_pair(a, std::move(answer));
    if (PyErr_Occurred() != nullptr) {
        if (!found || plan.arrow_device_array == attribute_place::nowhere || !is_refusal_pending())
            return outcome::raised;
        return detail::try_device_instead(a);
    }
    if (const outcome got = detail::take_device(a); !(got == outcome::absent)) return got;
    answer = detail::ask(a.obj, plan.arrow_stream, a.here.arrow_stream, found);
    if (answer) return detail::take_stream(a, std::move(answer));
    return found || PyErr_Occurred() != nullptr ? outcome::raised : outcome::absent;
}

}  // namespace tenon::py::arrow
