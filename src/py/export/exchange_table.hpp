// src/py/export/exchange_table.hpp: the C exchange table that a type of ours publishes, all five functions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <tenon/abi/dlpack.hpp>
#include <tenon/memory/allocate.hpp>
#include <tenon/py/acquired.hpp>
#include <tenon/py/call.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/tensor/foreign.hpp>
#include <tenon/tensor/validate.hpp>
#include "../../gpu/stream_order.hpp"
#include "../../gpu/until_done.hpp"
#include "../../tensor/managed.hpp"
#include "../import/capsule.hpp"
#include "../runtime/driver.hpp"
#include "../runtime/interpreter.hpp"

namespace tenon::py {

namespace detail {

using set_error_fn = void (*)(void* context, const char* kind, const char* message);

/// Tells the caller of the allocator, which may not want to know; always -1.
TENON_COLD inline int report(const error& e, void* context, set_error_fn set_error) noexcept {
    if (set_error == nullptr) return -1;
    const char* const kind = e.code == errc::no_memory   ? "MemoryError"
                             : e.code == errc::malformed ? "ValueError"
                                                         : "BufferError";
    try {
        const std::string text = "tenon: " + e.message();
        set_error(context, kind, text.c_str());
    } catch (...) {
        set_error(context, kind, "tenon: the tensor cannot be allocated");
    }
    return -1;
}

/// The allocator of the table: host memory. Needs no Python, and no thread state.
inline int allocate_managed(abi::dl_tensor* prototype, abi::managed_tensor_versioned** out, void* context,
                            set_error_fn set_error) noexcept {
    const auto fail = [&](const error& e) { return report(e, context, set_error); };
    if (prototype == nullptr || out == nullptr)
        return fail(malformed("prototype", "there is none, or no place for the result"));
    *out = nullptr;
    if (device(prototype->device) != device{}) {
        return fail(refused("device", "only memory of the CPU can be allocated here",
                            prototype->device.device_type, device{}.type));
    }
    abi::dl_tensor asked = *prototype;
    asked.strides = nullptr;  // not part of the question, and maybe never set
    if (auto ok = tenon::detail::validator::check_arrays(asked); !ok) return fail(ok.error());
    auto made = allocate(dtype(asked.dtype), extents(asked.shape, static_cast<std::size_t>(asked.ndim)));
    if (!made) return fail(made.error());
    auto managed = to_managed(std::move(*made));
    if (!managed) return fail(managed.error());
    *out = *managed;
    return 0;
}

/// A struct of anybody's becomes a producer object. It is taken over on success alone: what is refused stays
/// with the caller, untouched, and may be released by it.
template <class Wrap>
int object_from_managed(abi::managed_tensor_versioned* managed, void** out, Wrap&& wrap) noexcept {
    interpreter* const here = interpreter::current();
    if (here == nullptr) return -1;
    if (out == nullptr || managed == nullptr) {
        raise(malformed("exchange table", "there is no struct, or no place for the object"), "tenon: ");
        return -1;
    }
    foreign received(managed);
    keep_alive owner = keep_managed(managed, true, here);
    auto taken = tensor::take_as(received, owner);
    received.disown();
    if (!taken) {
        owner.disown();
        raise(taken.error(), "tenon: ");
        return -1;
    }
    tenon::detail::validator::add_marks(*taken, tenon::detail::marks_of(managed));
    PyObject* const made = wrap(std::move(*taken));
    if (made == nullptr) {
        taken->disown();  // still there: `wrap` takes it on success alone
        return -1;
    }
    *out = made;
    return 0;
}

/// Work on host memory has no stream; work on other memory of ours is on the default one.
inline int default_stream(std::int32_t, std::int32_t, void** out) noexcept {
    if (out != nullptr) *out = nullptr;
    return 0;
}

}  // namespace detail

/// The table of the type whose objects `Source` reads:
///   `const tensor_ref* Source::read(PyObject*, acquired&)`   the tensor, maybe in the room given; or null
///                                                            with an exception set
///   `bool Source::is_own(PyObject*, const interpreter&)`   whether it can: not by what the object says
///   `Source::lends`   whether axes and memory stay as they are for as long as the object lives
///   `PyObject* Source::wrap(tensor&&)`   a new producer object; null with an exception set, and the tensor
///                                        left as it was
template <class Source>
struct TENON_PRIVATE exchange_table {
    static const abi::exchange_api table;

    /// A new capsule for the attribute.
    [[nodiscard]] static PyObject* capsule() noexcept {
        return PyCapsule_New(const_cast<abi::exchange_api*>(&table), capsule_exchange_api, nullptr);
    }

    /// The tensor of an object of this type; BufferError for any other, and for a null place for the result.
    /// Whoever calls got the table from the object's type, but any class may publish a table that it has from
    /// another.
    [[nodiscard]] static const tensor_ref* checked(PyObject* obj, const void* out, acquired& room,
                                                   const interpreter& here) noexcept {
        if (out == nullptr) {
            return raise(malformed("exchange table", "there is no place for the result"), "tenon: ");
        }
        if (obj == nullptr || !Source::is_own(obj, here)) {
            PyErr_Format(PyExc_BufferError, "tenon: the exchange table is not that of '%.100s' objects",
                         obj != nullptr ? Py_TYPE(obj)->tp_name : "null");
            return nullptr;
        }
        const tensor_ref* const t = Source::read(obj, room);
        return t != nullptr && is_ready_by_default(*t, obj) ? t : nullptr;
    }

    /// The table says that work on memory of ours is on the default stream: where it is on another, that one
    /// has to wait.
    [[nodiscard]] static bool is_ready_by_default(const tensor_ref& t, PyObject* obj) noexcept {
        const device where = t.device();
        if (!where.is_cuda_memory() && !where.is_rocm_memory()) return true;
        if constexpr (requires { Source::ready(obj); }) {
            const gpu::ready_event& ready = Source::ready(obj);
            if (ready.is_captured()) return true;
            if (ready)
                return detail::succeeded(
                    detail::without_gil([&] { return gpu::order_after(where, ready, nullptr); }));
        }
        if (t.stream() == gpu::default_stream(where)) return true;
        return detail::succeeded(
            detail::without_gil_if(Source::lends, [&] { return gpu::order(where, t.stream(), nullptr); }));
    }

    static int own(void* obj, abi::managed_tensor_versioned** out) noexcept {
        interpreter* const here = interpreter::current();
        if (here == nullptr) return -1;
        acquired room;
        const tensor_ref* const t = checked(static_cast<PyObject*>(obj), out, room, *here);
        if (t == nullptr) return -1;
        keep_alive owner = gpu::released_late(detail::keep_object(static_cast<PyObject*>(obj), here),
                                              t->device(), t->stream(), nullptr);
        *out = make_managed<abi::managed_tensor_versioned>(*t, owner);
        if (*out != nullptr) return 0;
        PyErr_NoMemory();
        return -1;
    }

    static int to_object(abi::managed_tensor_versioned* managed, void** out) noexcept {
        return detail::object_from_managed(managed, out,
                                           [](tensor&& t) { return Source::wrap(std::move(t)); });
    }

    static int borrow(void* obj, abi::dl_tensor* out) noexcept {
        interpreter* const here = interpreter::current();
        if (here == nullptr) return -1;
        acquired room;
        const tensor_ref* const t = checked(static_cast<PyObject*>(obj), out, room, *here);
        if (t == nullptr) return -1;
        *out = tenon::detail::exported_tensor(*t, {});
        out->shape = const_cast<std::int64_t*>(t->shape().data());
        out->strides = const_cast<std::int64_t*>(t->strides().data());
        return 0;
    }
};

template <class Source>
constinit const abi::exchange_api exchange_table<Source>::table = {
    {{abi::dlpack_major, abi::dlpack_minor}, nullptr},
    &detail::allocate_managed,
    &exchange_table<Source>::own,
    &exchange_table<Source>::to_object,
    Source::lends ? &exchange_table<Source>::borrow : nullptr,
    &detail::default_stream,
};

}  // namespace tenon::py
