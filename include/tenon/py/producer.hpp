// tenon/py/producer.hpp: `make_producer` gives a Python class of the user's own every protocol at once.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

#include <tenon/py/acquired.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/tensor/tensor_info.hpp>

namespace tenon::gpu {
class ready_event;
}

namespace tenon::py {

/// A Python object with a `T` right behind its head, as classes written in plain C have it.
template <class T>
struct boxed {
    PyObject_HEAD T value;
};

class interpreter;

namespace detail {

/// How the objects of a class of producers are read.
struct producer_source {
    /// The tensor, maybe in the room given; or null with an exception set.
    const tensor_ref* (*read)(PyObject* self, acquired& room) noexcept;
    /// Whether it can read this object: not by what the object says of itself.
    bool (*is_own)(PyObject* obj, const interpreter& here) noexcept;
    /// When the memory is ready, where a stream does not tell; may be null.
    const gpu::ready_event& (*ready)(PyObject* self) noexcept;
    /// Axes and memory stay as they are for as long as the object lives.
    bool lends;
};

// What CPython and the consumers of an exchange table call of such a class, after how it is read.
namespace answer {
using source = const producer_source&;
using arguments = PyObject* const*;
TENON_API PyObject* dlpack(source, PyObject* self, arguments, Py_ssize_t, PyObject* names) noexcept;
TENON_API PyObject* dlpack_device(source, PyObject* self, PyObject*) noexcept;
TENON_API PyObject* array(source, PyObject* self, arguments, Py_ssize_t, PyObject* names) noexcept;
TENON_API PyObject* array_interface(source, PyObject* self, void*) noexcept;
TENON_API PyObject* cuda_array_interface(source, PyObject* self, void*) noexcept;
TENON_API PyObject* arrow_schema(source, PyObject* self, PyObject*) noexcept;
TENON_API PyObject* arrow_array(source, PyObject* self, arguments, Py_ssize_t, PyObject* names) noexcept;
TENON_API PyObject* arrow_device_array(source, PyObject* self, arguments, Py_ssize_t,
                                       PyObject* names) noexcept;
TENON_API int get_buffer(source, PyObject* self, Py_buffer* view, int flags) noexcept;
TENON_API void release_buffer(source, PyObject* self, Py_buffer* view) noexcept;
TENON_API PyObject* as_int(source, PyObject* self) noexcept;
TENON_API PyObject* as_float(source, PyObject* self) noexcept;
TENON_API int as_bool(source, PyObject* self) noexcept;  // only Tensor itself can be asked for this
TENON_API int table_own(source, void* obj, abi::managed_tensor_versioned** out) noexcept;
TENON_API int table_borrow(source, void* obj, abi::dl_tensor* out) noexcept;
}  // namespace answer

/// A function of these that knows how the objects are read.
template <const producer_source& Source, auto Function>
struct bound_answer;
template <const producer_source& Source, class R, class... Args,
          R (*Function)(const producer_source&, Args...) noexcept>
struct bound_answer<Source, Function> {
    static R call(Args... args) noexcept { return Function(Source, args...); }
};

/// The functions of one class, and the tables of CPython's and DLPack's that they go into.
struct producer_tables {
    PyObject* (*dlpack)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
    decltype(dlpack) array, arrow_array, arrow_device_array;
    PyCFunction dlpack_device, arrow_schema;
    getter array_interface, cuda_array_interface;
    PyBufferProcs buffer;
    unaryfunc as_int, as_float;
    decltype(abi::exchange_api::managed_tensor_from_py_object_no_sync) table_own;
    decltype(abi::exchange_api::dltensor_from_py_object_no_sync) table_borrow;

    std::array<PyMethodDef, 6> methods = {};
    std::array<wrapperbase, 4> slot_methods = {};
    std::array<PyGetSetDef, 2> attributes = {};
    abi::exchange_api exchange = {};
    PyNumberMethods numbers = {};
};
template <const producer_source& S>
inline producer_tables tables_of TENON_PRIVATE{
    .dlpack = bound_answer<S, &answer::dlpack>::call,
    .array = bound_answer<S, &answer::array>::call,
    .arrow_array = bound_answer<S, &answer::arrow_array>::call,
    .arrow_device_array = bound_answer<S, &answer::arrow_device_array>::call,
    .dlpack_device = bound_answer<S, &answer::dlpack_device>::call,
    .arrow_schema = bound_answer<S, &answer::arrow_schema>::call,
    .array_interface = bound_answer<S, &answer::array_interface>::call,
    .cuda_array_interface = bound_answer<S, &answer::cuda_array_interface>::call,
    .buffer = {bound_answer<S, &answer::get_buffer>::call, bound_answer<S, &answer::release_buffer>::call},
    .as_int = bound_answer<S, &answer::as_int>::call,
    .as_float = bound_answer<S, &answer::as_float>::call,
    .table_own = bound_answer<S, &answer::table_own>::call,
    .table_borrow = S.lends ? bound_answer<S, &answer::table_borrow>::call : nullptr,
};

/// Null, with an exception that says that the object holds nothing.
TENON_API const tensor_ref* holds_nothing(PyObject* self) noexcept;
/// What `describe` said of an object, checked; null with an exception set.
TENON_API const tensor_ref* admit_described(PyObject* self, const tensor_info& info, acquired& room) noexcept;
/// The class, or one derived from it: known by a slot that only `make_producer` fills.
TENON_API bool has_buffer_function(PyObject* obj, getbufferproc function) noexcept;
/// Gives the class its protocols. Where the objects are `boxed`, they must be of this size.
[[nodiscard]] TENON_API bool become_producer(PyTypeObject* type, producer_tables& tables,
                                             std::size_t boxed_size) noexcept;

template <class T>
struct unbox {
    T* operator()(PyObject* self) const noexcept { return &reinterpret_cast<boxed<T>*>(self)->value; }
};

/// Reads the objects of a user's class, anew each time: it may have grown, or moved its memory. The axes are
/// ours for the length of a call, and the memory is the class's.
template <class T, class Get>
struct class_source {
    [[nodiscard]] static const tensor_ref* read(PyObject* self, acquired& room) noexcept try {
        return foreign_code([&]() -> const tensor_ref* {
            auto* const object = Get{}(self);
            if (PyErr_Occurred() != nullptr) return nullptr;
            return object != nullptr ? admit_described(self, describe(*object), room) : holds_nothing(self);
        });
    } catch (...) {
        raise_caught();
        return nullptr;
    }
    [[nodiscard]] static bool is_own(PyObject* obj, const interpreter&) noexcept {
        return has_buffer_function(obj, bound_answer<source, &answer::get_buffer>::call);
    }
    static constexpr producer_source source TENON_PRIVATE{&read, &is_own, nullptr, false};
};

}  // namespace detail

/// Gives the class `type`, whose objects hold a `T` that `tensor_info describe(T&)` describes, every protocol
/// of a producer: `__dlpack__`, `__dlpack_device__`, the C exchange table, the buffer protocol,
/// `__array_interface__`, `__cuda_array_interface__`, `__array__`, and Arrow's `__arrow_c_array__` and its
/// like. What is exported keeps the object alive; its memory must stay where it is meanwhile.
///
/// `get` is a lambda without captures that finds the `T` in an object; null means that there is none. Without
/// it, the objects are `py::boxed<T>`. To be called once, before the class is derived from. False with an
/// exception set on failure.
template <class T, class Get = detail::unbox<T>>
[[nodiscard]] bool make_producer(PyTypeObject* type, Get = {}) noexcept {
    static_assert(describable<T>, "make_producer: T needs a function `tenon::tensor_info describe(T&)`");
    static_assert(
        std::is_empty_v<Get> && std::is_default_constructible_v<Get>,
        "make_producer: pass a lambda that captures nothing, `[](PyObject* o) { return find(o); }`");
    static_assert(std::is_convertible_v<std::invoke_result_t<Get, PyObject*>, const T*>,
                  "make_producer: `get` must return a pointer to T");
    static_assert(describable<std::remove_pointer_t<std::invoke_result_t<Get, PyObject*>>>,
                  "make_producer: `get` returns a pointer to const, which `describe(T&)` cannot take");
    constexpr bool is_boxed = std::is_same_v<Get, detail::unbox<T>>;
    return detail::become_producer(type, detail::tables_of<detail::class_source<T, Get>::source>,
                                   is_boxed ? sizeof(boxed<T>) : 0);
}
template <class T, class Get = detail::unbox<T>>
[[nodiscard]] bool make_producer(PyObject* type, Get get = {}) noexcept {
    if (PyType_Check(type) != 0) return make_producer<T>(reinterpret_cast<PyTypeObject*>(type), get);
    raise(errc::not_an_array, "tenon: make_producer needs a class");
    return false;
}

}  // namespace tenon::py
