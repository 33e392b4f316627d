// src/py/library/current_stream.hpp: the stream that an array's library is working on, to launch work on as
// well.
#pragma once

#include "library_of.hpp"

namespace tenon::py {

/// The C function of a library that says which stream it works on, or null: Cython publishes functions as
/// capsules that are named by their signature.
[[nodiscard]] inline library_stream find_library_stream(const library_row& row) noexcept {
    if (row.stream_module == nullptr) return nullptr;
    const ref functions = imported_attr(row.stream_module, "__pyx_capi__");
    const ref capsule = functions && PyDict_CheckExact(functions.get())
                            ? ref::take(call::dict_item(functions.get(), row.stream_function))
                            : ref();
    void* const found = pointer_in(capsule.get(), "intptr_t (int)");
    (void)forget_answer();
    return reinterpret_cast<library_stream>(found);
}

namespace detail {

TENON_COLD inline bool stream_unknown() noexcept {
    if (PyErr_Occurred() == nullptr)
        raise(refused("stream", "the library does not say which stream it works on"), "tenon: ");
    return false;
}

using table_stream = decltype(abi::exchange_api::current_work_stream);

/// Asks a table's function for the stream its library works on; false when it does not say. It may throw.
TENON_HOT [[nodiscard]] inline bool tell_stream(table_stream ask, device where, void*& out) {
    return foreign_code([&] { return ask(where.type, where.id, &out) == 0; });
}
/// The same of a library's own function.
TENON_HOT [[nodiscard]] inline bool tell_stream(library_stream ask, device where, void*& out) {
    out = reinterpret_cast<void*>(foreign_code([&] { return ask(where.id); }));
    return PyErr_Occurred() == nullptr;
}

/// The same; one that throws does not know.
template <class Function>
[[nodiscard]] bool ask_for_stream(Function ask, device where, void*& out) noexcept try {
    return tell_stream(ask, where, out);
} catch (...) {
    return false;
}

/// Libraries that can be asked which stream they work on, so that a release does not end a capture.
class stream_sources {
public:
    /// A function that has answered for this kind of device: others may crash on what they do not know. One
    /// of `any_thread` needs no Python.
    TENON_HOT static void add(table_stream ask, device where, bool any_thread) noexcept {
        note(any_thread ? known(where).free : known(where).tables, ask);
    }
    TENON_HOT static void add(library_stream ask, device where, bool) noexcept {
        note(known(where).functions, ask);
    }

private:
    template <class Function>
    using list = std::array<std::atomic<Function>, 4>;
    struct sources {
        list<table_stream> free;  ///< of Python
        list<table_stream> tables;
        list<library_stream> functions;
    };
    TENON_PRIVATE static inline constinit sources all_[2]{};
    TENON_HOT static sources& known(device where) noexcept { return all_[where.is_cuda_memory() ? 0 : 1]; }

    /// The first is mostly the only one.
    template <class Function>
    TENON_HOT static void note(list<Function>& places, Function ask) noexcept {
        if (places.front().load(std::memory_order_relaxed) != ask) [[unlikely]]
            put(places, ask);
    }
    template <class Function>
    TENON_COLD static void put(list<Function>& places, Function ask) noexcept {
        for (std::atomic<Function>& place : places) {
            Function none = nullptr;
            if (place.load(std::memory_order_relaxed) == ask) return;
            if (place.compare_exchange_strong(none, ask)) {
                gpu::capture_questions.front().store(&is_any_capturing);
                return;
            }
        }
    }
    /// Whether one of them works on a stream that is captured. `attached`: to Python, so that an exception
    /// may be left behind.
    template <class Function>
    static bool is_one_capturing(const list<Function>& all, const gpu::driver& d, device where,
                                 bool attached) noexcept {
        for (const std::atomic<Function>& place : all) {
            const Function ask = place.load();
            if (ask == nullptr) return false;
            void* stream = nullptr;
            if (ask_for_stream(ask, where, stream) && stream != nullptr &&
                gpu::capture_of(d, stream) == gpu::capture::active)
                return true;
            if (attached) PyErr_Clear();
        }
        return false;
    }
    static int is_any_capturing(abi::dl_device asked) noexcept {
        device where(asked);
        const gpu::driver* const d = gpu::driver::of(where);
        if (d == nullptr) return 0;
        const sources& all = known(where);
        where.type = where.is_cuda_memory() ? abi::device_code::cuda : abi::device_code::rocm;
        if (is_one_capturing(all.free, *d, where, false)) return 1;
        if (attached_thread_state() == nullptr) return 0;
        const error_guard keep;
        const bool is_one =
            is_one_capturing(all.tables, *d, where, true) || is_one_capturing(all.functions, *d, where, true);
        return is_one ? 1 : 0;
    }
};

}  // namespace detail

namespace detail {

/// What the next two do. The library's function may throw.
template <class Function>
TENON_HOT [[nodiscard]] inline bool note_told_stream(Function ask, bool any_thread, acquired& got) {
    const device where = got.device();
    constexpr bool is_table = std::is_same_v<Function, table_stream>;
    if (is_table && (!where.has_streams() || ask == nullptr)) return true;
    void* stream = nullptr;
    if (!tell_stream(ask, where, stream)) return stream_unknown();
    stream_sources::add(ask, where, any_thread);
    got.set_stream(stream);
    return true;
}

}  // namespace detail

/// Asks for the stream that a library works on, by the function of its exchange table (null: it has none) or
/// by its own, and notes it; false with an exception set when that fails. To a table, memory without streams
/// has none.
template <class Function>
[[nodiscard]] bool note_current_stream(Function ask, bool any_thread, acquired& got) noexcept try {
    return detail::note_told_stream(ask, any_thread, got);
} catch (...) {
    raise_caught();
    return false;
}

/// The same of a table that needs no Python, for the path of every argument: compiled for speed, and apart,
/// or the path of what has no stream would be longer by its frame.
[[nodiscard]] TENON_API bool note_lent_stream(detail::table_stream ask, acquired& got) noexcept;

/// For when memory goes to a consumer that may be captured: PyTorch may not have been met yet. Asked only if
/// it has a device it can answer for.
TENON_PRIVATE inline void watch_torch(const interpreter& names, device where) noexcept {
    static std::atomic<bool> watched{false};
    if (!where.is_cuda_memory() || watched.load(std::memory_order_relaxed)) return;
    constexpr device first(abi::device_code::cuda, 0);
    const gpu::driver* const driver = gpu::driver::of(first);
    if (driver == nullptr || driver->started != 0) return;
    const error_guard keep;
    const ref type = imported_attr("torch", "Tensor");
    if (!type || PyType_Check(type.get()) == 0) return;
    // PyTorch's own needs no Python; that of whatever else calls itself so may.
    const bool genuine = is_library_class(as_type(type), "torch", "Tensor", "torch._C.TensorBase");
    if (PyErr_Occurred() != nullptr) return;  // interrupted: it is told, and asked again
    const ref capsule = ref::take(call::type_attr(as_type(type), names.exchange_api));
    const auto* const table =
        static_cast<const abi::exchange_api*>(pointer_in(capsule.get(), capsule_exchange_api));
    if (table == nullptr || !tenon::detail::is_readable<sizeof *table>(table) ||
        table->header.version.major != abi::dlpack_major)
        return;
    const auto ask = table->current_work_stream;
    if (ask == nullptr) return;
    void* stream = nullptr;
    if (detail::ask_for_stream(ask, first, stream)) detail::stream_sources::add(ask, first, genuine);
    watched.store(true);  // one that cannot answer by now has no work to capture
    PyErr_Clear();
}

}  // namespace tenon::py
