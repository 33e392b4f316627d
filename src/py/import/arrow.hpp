// src/py/import/arrow.hpp: the rung for Arrow's C data, device and stream interfaces: one array of numbers,
// or of fixed-size lists of them, without nulls.
#pragma once

#include "attempt.hpp"

namespace tenon::py::arrow {

namespace layout = tenon::arrow;

/// The name of the capsule a struct travels in. A capsule keeps the pointer, not the characters: static.
template <class Struct>
inline constexpr const char* capsule_name =
    std::is_same_v<Struct, abi::arrow_schema>         ? "arrow_schema"
    : std::is_same_v<Struct, abi::arrow_array>        ? "arrow_array"
    : std::is_same_v<Struct, abi::arrow_device_array> ? "arrow_device_array"
                                                      : "arrow_array_stream";

/// The struct in a capsule of its name; null, without an exception, when it is another object.
template <class Struct>
[[nodiscard]] Struct* struct_in(PyObject* capsule) noexcept {
    return static_cast<Struct*>(pointer_in(capsule, capsule_name<Struct>));
}

/// Whether the type itself says that its objects are Arrow's, so that no attribute is looked at in vain.
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

/// A struct that a producer filled, or gave up, released when the scope ends unless it is moved on.
template <class Struct>
class received {
public:
    received() noexcept = default;
    received(const received&) = delete;
    received& operator=(const received&) = delete;
    ~received() {
        if (held.release == nullptr) return;
        const error_guard keep;  // the producer's code runs, and may not see what is pending
        try {
            foreign_code([&] { held.release(&held); });
        } catch (...) {  // NOLINT(bugprone-empty-catch): it breaks its interface's rules; nobody can be told
        }
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
        received<abi::arrow_array> last;
        last.take(*static_cast<abi::arrow_array*>(subject));
        std::free(subject);
    });
}

/// Describes so many items in `out`; takes nothing over.
[[nodiscard]] inline result<void> admit(layout::item_type& type, std::int64_t length, const void* data,
                                        device where, acquired& out) noexcept {
    layout::fill_axes(type.axes, length, out.storage);
    return out.admit_stored(
        {without_axes(const_cast<void*>(data), type.axes.rank, type.type, where), abi::flag::read_only});
}

/// Checks `array`, which `seen` is a copy of, and moves it out if it is sound and not only looked at. On
/// failure it is left as it was.
[[nodiscard]] inline outcome take_array(abi::arrow_array& array, const abi::arrow_array& seen,
                                        layout::item_type& type, device where, bool readable, bool only_look,
                                        interpreter& here, acquired& out) noexcept {
    const auto found = layout::find_elements(seen, type, readable);
    if (!found) return found.error();
    if (auto ok = admit(type, seen.length, *found, where, out); !ok) return ok;
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

/// Lets the producer's capsules go; what is left in them is released by their destructors.
inline void drop(ref& answer) noexcept {
    const error_guard keep;  // a destructor may leave an exception behind
    answer = ref();
}

/// Sees to it that the data is complete when the consumer gets to it: its stream waits for the event, or the
/// host does where it reads the memory itself.
[[nodiscard]] inline result<void> order_event(device where, void* event, std::intptr_t stream) noexcept {
    const bool on_host =
        where.type == abi::device_code::cuda_host || where.type == abi::device_code::cuda_managed;
    if (!where.is_cuda() && !on_host)
        return refused("sync_event", "an event of this device cannot be waited for here", where.type)
            .with_advice("synchronize first, and pass stream=-1");
    if (layout::cannot_be(static_cast<void**>(event)))
        return malformed("sync_event", "the pointer cannot be an event");
    if (!on_host && stream <= 0)
        return refused("stream", "it is neither 1 (legacy default), 2 (per-thread default), -1 nor a handle",
                       stream);
    void* const awaited = *static_cast<void**>(event);
    return detail::without_gil([&] {
        return on_host ? gpu::finish_event(where, awaited)
                       : gpu::order_after(where, awaited, reinterpret_cast<void*>(stream));
    });
}

/// Sees to the work that the data comes from and goes into. The array is ours by now: others may run.
[[nodiscard]] inline outcome follow_event(attempt& a, device where, void* event) noexcept {
    const std::intptr_t stream = a.options.stream.value_or(1);
    if (event != nullptr && stream != -1) {
        if (auto ordered = order_event(where, event, stream); !ordered) return a.give_up(ordered.error());
        // The producer works on a stream it does not name: it gets its memory back when our work is done.
        if (where.is_cuda() && a.out.owning && !a.out.looking)
            a.out.owner = gpu::released_late(std::move(a.out.owner), where);
    }
    if (where.is_cuda() && a.options.stream && stream > 0) a.out.set_stream(reinterpret_cast<void*>(stream));
    return outcome::taken;
}

/// Takes the array out of a pair of capsules, which says where it is if it is one `with_device`. `seen` is
/// what it said. Runs no code of others.
[[nodiscard]] inline outcome take_from_pair(attempt& a, const ref& pair, bool with_device, device& where,
                                            abi::arrow_device_array& seen) noexcept {
    const bool is_pair = PyTuple_CheckExact(pair.get()) && PyTuple_GET_SIZE(pair.get()) == 2;
    PyObject* const first = is_pair ? PyTuple_GET_ITEM(pair.get(), 0) : nullptr;
    PyObject* const second = is_pair ? PyTuple_GET_ITEM(pair.get(), 1) : nullptr;
    if (!is_pair || !PyCapsule_CheckExact(first) || !PyCapsule_CheckExact(second))
        return malformed("Arrow", "the method did not return a pair of capsules");
    const auto* const schema = struct_in<abi::arrow_schema>(first);
    if (schema == nullptr)
        return malformed("Arrow", "the first capsule of the pair is not named \"arrow_schema\"");
    auto* const on_device = with_device ? struct_in<abi::arrow_device_array>(second) : nullptr;
    auto* const array = on_device != nullptr ? &on_device->array : struct_in<abi::arrow_array>(second);
    if ((on_device != nullptr) != with_device || array == nullptr)
        return malformed("Arrow", with_device
                                      ? "the second capsule of the pair is not named \"arrow_device_array\""
                                      : "the second capsule of the pair is not named \"arrow_array\"");
    if (layout::cannot_be(array)) return malformed("array", "the pointer cannot be an array");

    const critical_section alone(second);
    layout::item_type type;
    if (auto ok = layout::read_type(schema, type); !ok) return ok;
    if (with_device) {
        seen = *on_device;
        const auto place = layout::read_device(seen);
        if (!place) return place.error();
        where = *place;
    } else {
        seen.array = *array;
    }
    if (!a.options.is_met_by(where)) return detail::elsewhere(where, a.options);
    const bool readable = where.is_host_accessible() && seen.sync_event == nullptr;
    // Capsules that somebody keeps for later, and of which this is but a look, stay as they are.
    const bool only_look = a.out.looking && (Py_REFCNT(pair.get()) > 1 || Py_REFCNT(second) > 1);
    return take_array(*array, seen.array, type, where, readable, only_look, a.here, a.out);
}

/// Takes the array in a pair of capsules, in the order of the work on its device.
[[nodiscard]] inline outcome take_pair(attempt& a, ref pair, bool with_device) noexcept {
    device where;
    abi::arrow_device_array seen{};
    outcome got = take_from_pair(a, pair, with_device, where, seen);
    if (got == outcome::taken) got = follow_event(a, where, seen.sync_event);
    drop(pair);
    return got;
}

/// The exception of a stream whose function has failed: the one it raised itself, else its errno and words.
TENON_COLD inline void stream_failed(abi::arrow_array_stream& stream, const char* function,
                                     int code) noexcept {
    if (PyErr_Occurred() != nullptr) return;
    const char* told = nullptr;
    try {
        if (stream.get_last_error != nullptr)
            told = foreign_code([&] { return stream.get_last_error(&stream); });
    } catch (...) {  // NOLINT(bugprone-empty-catch): then there are no words
    }
    if (told == nullptr || tenon::detail::is_implausible(told) || *told == '\0') told = "it does not say why";
    // As much as anybody reads of a text that may have no end.
    if (code == ENOMEM)
        PyErr_Format(PyExc_MemoryError, "tenon: %s of the Arrow stream: %.2000s", function, told);
    else
        PyErr_Format(PyExc_BufferError, "tenon: %s of the Arrow stream failed with error %d: %.2000s",
                     function, code, told);
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
        if (layout::cannot_be(given)) return malformed("stream", "the pointer cannot be a stream");
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
    if (const outcome got = only_chunk(stream.held, chunk); got != outcome::taken) return got;
    if (chunk.held.release == nullptr) return admit(type, 0, nullptr, device{}, a.out);
    const abi::arrow_array seen = chunk.held;
    return take_array(chunk.held, seen, type, device{}, true, false, a.here, a.out);
}

/// `__arrow_c_device_array__`.
[[nodiscard]] inline outcome take_device(attempt& a) noexcept {
    bool found = false;
    ref answer = call_protocol_method(a.plan.arrow_device_array, a.here.arrow_device_array, a.obj, found);
    if (answer) return take_pair(a, std::move(answer), true);
    return found || PyErr_Occurred() != nullptr ? outcome::raised : outcome::absent;
}

/// Whether the object has an array or a stream in host memory to give. None is asked for.
[[nodiscard]] inline bool is_on_host(const attempt& a) noexcept {
    const auto has = [&](attribute_place place, PyObject* name) {
        ref found;
        if (place != attribute_place::nowhere && !read_attribute(a.obj, name, found)) PyErr_Clear();
        return static_cast<bool>(found);
    };
    return has(a.plan.arrow_array, a.here.arrow_array) || has(a.plan.arrow_stream, a.here.arrow_stream);
}

/// Arrays on a device refuse to be had as the host's. If the other way does not lead anywhere, the exception
/// that is pending now is what was wrong.
[[nodiscard]] inline outcome try_device_instead(attempt& a) noexcept {
    ref first = pending_exception();
    const outcome got = take_device(a);
    if (got == outcome::taken || got == outcome::refused) return got;
    raise_again(std::move(first));
    return outcome::raised;
}

/// Asks for one array, in host memory if it can be, on a device if not, else for a stream of one chunk. What
/// Arrow lends is read-only.
[[nodiscard]] inline outcome take(attempt& a) noexcept {
    const type_plan& plan = a.plan;
    if (!a.host_will_do()) {
        const outcome got = take_device(a);
        if (got != outcome::absent || !is_on_host(a)) return got;
        return refused("device", "the data is in host memory, and another device was asked for",
                       abi::device_code::cpu, a.options.to.value_or(device{}).type);
    }
    bool found = false;
    ref answer = call_protocol_method(plan.arrow_array, a.here.arrow_array, a.obj, found);
    if (answer) return take_pair(a, std::move(answer), false);
    if (PyErr_Occurred() != nullptr) {
        if (!found || plan.arrow_device_array == attribute_place::nowhere || !is_refusal_pending())
            return outcome::raised;
        return try_device_instead(a);
    }
    if (const outcome got = take_device(a); got != outcome::absent) return got;
    answer = call_protocol_method(plan.arrow_stream, a.here.arrow_stream, a.obj, found);
    if (answer) return take_stream(a, std::move(answer));
    return found || PyErr_Occurred() != nullptr ? outcome::raised : outcome::absent;
}

}  // namespace tenon::py::arrow
