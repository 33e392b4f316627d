// src/py/export/producer_type.hpp: the Python type `Tensor`: a tensor that any library can read, as often
// as it likes.
//
// Every extension module that includes this has a type of its own, made when it is first needed: the `tenon`
// package need not be installed, and two modules built with different versions of Tenon do not meet.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <tenon/detail/config.hpp>
#include <tenon/py/acquired.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/py/taken.hpp>
#include <tenon/tensor/tensor.hpp>
#include <tenon/value/dtype_names.hpp>
#include "../../gpu/stream_order.hpp"
#include "../../gpu/until_done.hpp"
#include "../library/frameworks.hpp"
#include "../runtime/chained_object.hpp"
#include "../runtime/driver.hpp"
#include "../runtime/interpreter.hpp"
#include "protocols.hpp"

namespace tenon::py {

namespace detail {

struct tensor_object {
    chained_object head;
    PyObject* weak_references;  // next, so that its offset is known without asking a C++ type for it
    tensor held;
    gpu::ready_event ready;  ///< when the memory is ready, unless its stream says it
};

[[nodiscard]] inline tensor_object* as_tensor_object(PyObject* self) noexcept {
    return reinterpret_cast<tensor_object*>(self);
}

/// Reads the objects of our own type.
struct TENON_PRIVATE tensor_source {
    static constexpr bool lends = true;

    [[nodiscard]] static const tensor* get(PyObject* self) noexcept { return &as_tensor_object(self)->held; }
    [[nodiscard]] static bool is_own(PyObject* obj, const interpreter& here) noexcept {
        return reinterpret_cast<PyObject*>(Py_TYPE(obj)) ==
               here.producer_type.load();  // it has no subclasses
    }
    [[nodiscard]] static const tensor_ref* read(PyObject* self, acquired&) noexcept { return get(self); }
    [[nodiscard]] static const gpu::ready_event& ready(PyObject* self) noexcept {
        return as_tensor_object(self)->ready;
    }
    [[nodiscard]] static PyObject* wrap(tensor&& t) noexcept;  // below: it needs the type
};

/// The Python object the tensor's memory belongs to, borrowed, or null where that cannot be known.
[[nodiscard]] inline PyObject* owner_of(const tensor& t) noexcept {
    const keep_alive& owner = gpu::kept_by(t.owner());
    if (PyObject* const object = object_kept_by(owner)) return object;
    if (owner.release_function() == release_interface) return static_cast<PyObject*>(owner.subject());
    return owner.release_function() == release_buffer ? static_cast<Py_buffer*>(owner.subject())->obj
                                                      : nullptr;
}

/// The owner as the collector may see it. Before 3.13 it would clear a memoryview that still lends its
/// buffer, which then crashes (gh-77894): neither that may be seen, nor what 3.12 puts between a `__buffer__`
/// and it.
[[nodiscard]] inline PyObject* visible_owner(const tensor& t) noexcept {
    PyObject* const owner = owner_of(t);
#if PY_VERSION_HEX < 0x030D0000
    if (owner != nullptr &&
        (PyMemoryView_Check(owner) || std::strcmp(Py_TYPE(owner)->tp_name, "_buffer_wrapper") == 0))
        return nullptr;
#endif
    return owner;
}

/// The owner as people want to know it: of a Tensor over a Tensor, what the last of them belongs to.
[[nodiscard]] inline PyObject* root_owner_of(const tensor& t) noexcept {
    PyObject* owner = owner_of(t);
    if (gpu::kept_by(t.owner()).release_function() == release_interface) return PyTuple_GET_ITEM(owner, 0);
    const interpreter* const here = interpreter::current();
    if (here == nullptr) PyErr_Clear();
    while (owner != nullptr && here != nullptr && tensor_source::is_own(owner, *here)) {
        const tensor& inner = as_tensor_object(owner)->held;
        PyObject* const next = owner_of(inner);
        if (next == nullptr) break;
        const bool is_pair = gpu::kept_by(inner.owner()).release_function() == release_interface;
        owner = is_pair ? PyTuple_GET_ITEM(next, 0) : next;
    }
    return owner;
}

/// There is no tp_clear, as for tuples: a Tensor cannot be changed, so a cycle through it goes through
/// something that can, and is broken there. Who looks at the memory while that happens finds it whole.
inline int traverse_tensor(PyObject* self, visitproc visit, void* arg) noexcept {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(visible_owner(as_tensor_object(self)->held));
    return 0;
}

/// A Tensor can keep a Tensor that keeps a Tensor...: this runs in turn.
inline void dealloc_tensor(PyObject* self) noexcept {
    PyTypeObject* const type = Py_TYPE(self);
    if (as_tensor_object(self)->weak_references != nullptr) call::clear_weak_references(self);
    {
        const error_guard keep;  // the owner's own code runs, and may not see what is pending
        as_tensor_object(self)->ready.~ready_event();
        as_tensor_object(self)->held.~tensor();
    }
    type->tp_free(self);
    Py_DECREF(type);
}

[[nodiscard]] inline PyObject* text_of(const std::string& text) noexcept {
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}
[[nodiscard]] inline PyObject* tuple_of(extents values) noexcept {
    return tuple_of_axes(values.size(), [&](std::size_t i) { return values[i]; });
}

/// A property: what `Read` makes of the tensor.
template <auto Read>
PyObject* tensor_property(PyObject* self, void*) noexcept {
    try {
        return Read(as_tensor_object(self)->held);
    } catch (const std::bad_alloc&) {
        return PyErr_NoMemory();
    }
}

template <auto Read>
constexpr PyGetSetDef make_property(const char* name, const char* doc) noexcept {
    return {name, tensor_property<Read>, nullptr, doc, nullptr};
}

/// "numpy.ndarray", "bytes": the package and the class.
[[nodiscard]] inline std::string short_type_name(PyObject* obj) {
    const ref held = class_of(obj);
    PyTypeObject* const type = as_type(held);
    const std::string package = defining_package(type);
    const std::string_view full = type->tp_name;
    const std::string_view last = full.substr(full.rfind('.') + 1);
    return (package == "builtins" || package == full ? "" : package + ".") + std::string(last);
}

[[nodiscard]] inline std::string describe_in_words(const tensor& t) {
    const auto list = [](extents values) {
        std::string out = "(";
        for (std::size_t i = 0; i < values.size(); ++i)
            out += (i != 0 ? ", " : "") + std::to_string(values[i]);
        return out + (values.size() == 1 ? ",)" : ")");
    };
    std::string out = "tenon.Tensor(shape=" + list(t.shape()) + ", dtype=" + name(t.dtype()) +
                      ", device=" + name(t.device());
    if (!t.is_c_contiguous()) out += ", strides=" + list(t.strides());
    if (t.is_read_only()) out += ", readonly";
    if (PyObject* const owner = root_owner_of(t); owner != nullptr && owner != Py_None)
        out += ", owner=" + short_type_name(owner);
    return out + ")";
}

inline PyObject* repr_of_tensor(PyObject* self) noexcept {
    return tensor_property<[](const tensor& t) { return text_of(describe_in_words(t)); }>(self, nullptr);
}

inline Py_ssize_t length_of_tensor(PyObject* self) noexcept {
    const tensor& t = as_tensor_object(self)->held;
    if (t.ndim() > 0) return static_cast<Py_ssize_t>(t.shape(0));
    PyErr_SetString(PyExc_TypeError, "tenon: a Tensor without axes has no length");
    return -1;
}

/// NumPy's own word for the element type: NumPy asks for it where `dtype` is a name. TypeError where it has
/// none.
[[nodiscard]] inline PyObject* numpy_dtype_of(const tensor& t) noexcept {
    interpreter* const here = interpreter::current();
    if (here == nullptr) return nullptr;
    const dtype type = t.dtype();
    const bool padded = t.is_subbyte_padded();
    const auto functions = numpy_abi::functions::find(*here);
    PyObject* const made = functions ? numpy::descriptor_for(type, padded, *functions) : nullptr;
    if (made != nullptr || PyErr_ExceptionMatches(PyExc_BufferError) == 0) return made;
    const ref refusal = pending_exception();
    const ref text = ref::take(foreign_code([&] { return PyObject_Str(refusal.get()); }));
    if (text) PyErr_SetObject(PyExc_TypeError, text.get());
    return nullptr;
}

inline PyObject* refuse_pickling(PyObject*, PyObject*) noexcept {
    PyErr_SetString(PyExc_TypeError,
                    "tenon: a Tensor is a view of memory it does not own and cannot be pickled; "
                    "pickle the array it came from");
    return nullptr;
}

using tensor_protocols = protocols<tensor_source>;

[[nodiscard]] TENON_PRIVATE inline PyObject* make_producer_type() noexcept {
    static PyMethodDef* const protocol = tensor_protocols::methods();
    static_assert(tensor_protocols::method_count == 6);
    static PyMethodDef methods[] = {
        protocol[0],
        protocol[1],
        protocol[2],
        protocol[3],
        protocol[4],
        protocol[5],
        {"__complex__", tensor_protocols::as_complex, METH_NOARGS, nullptr},
        {"__bytes__", tensor_protocols::as_bytes, METH_NOARGS, nullptr},
        {"__reduce_ex__", refuse_pickling, METH_O, nullptr},
        {nullptr, nullptr, 0, nullptr},
    };

    static PyGetSetDef properties[] = {
        tensor_protocols::attributes()[0],
        tensor_protocols::attributes()[1],
        make_property<[](const tensor& t) { return tuple_of(t.shape()); }>("shape", "Extent of each axis."),
        make_property<[](const tensor& t) { return tuple_of(t.strides()); }>(
            "strides", "Step along each axis, in elements (not bytes)."),
        make_property<[](const tensor& t) { return text_of(name(t.dtype())); }>("dtype",
                                                                                "Name of the element type."),
        make_property<numpy_dtype_of>("__numpy_dtype__", "NumPy's word for the element type."),
        make_property<[](const tensor& t) { return text_of(name(t.device())); }>(
            "device", "Where the memory is: 'cpu', 'cuda:0', ..."),
        make_property<[](const tensor& t) { return PyLong_FromLong(t.ndim()); }>("ndim", "Number of axes."),
        make_property<[](const tensor& t) { return PyLong_FromLongLong(t.size()); }>("size",
                                                                                     "Number of elements."),
        make_property<[](const tensor& t) { return PyLong_FromLongLong(t.nbytes()); }>(
            "nbytes", "Bytes the elements take side by side."),
        make_property<[](const tensor& t) { return PyLong_FromLongLong(t.itemsize()); }>(
            "itemsize", "Bytes of one element standing alone."),
        make_property<[](const tensor& t) { return PyLong_FromVoidPtr(t.data()); }>(
            "data_ptr", "Address of the first element."),
        make_property<[](const tensor& t) {
            if (!t.device().is_cuda_memory() && !t.device().is_rocm()) Py_RETURN_NONE;
            return PyLong_FromVoidPtr(t.stream());
        }>("stream",
           "The stream the memory was made on, as a handle (1: CUDA's default); None for host memory."),
        make_property<[](const tensor& t) { return PyBool_FromLong(t.is_read_only() ? 1 : 0); }>(
            "readonly", "Whether the memory must not be written to."),
        make_property<[](const tensor& t) { return PyBool_FromLong(t.is_c_contiguous() ? 1 : 0); }>(
            "is_contiguous", "Whether the elements lie in row-major order without gaps."),
        make_property<[](const tensor& t) { return PyLong_FromUnsignedLongLong(t.flags()); }>(
            "flags", "The DLPack flag bits: 1 read-only, 2 copied, 4 sub-byte elements padded to bytes."),
        make_property<[](const tensor& t) {
            if (t.version().major == 0) Py_RETURN_NONE;
            return Py_BuildValue("(II)", t.version().major, t.version().minor);
        }>("version", "DLPack version the producer stated, or None when its protocol states none."),
        make_property<[](const tensor& t) {
            PyObject* const owner = root_owner_of(t);
            return ref::borrow(owner != nullptr ? owner : Py_None).release();
        }>("owner", "The object the memory belongs to, or None where only its producer knows."),
        {nullptr, nullptr, nullptr, nullptr, nullptr},
    };

    static PyMemberDef members[] = {
        {"__weaklistoffset__", T_PYSSIZET, sizeof(chained_object), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr},
    };

    PyType_Slot slots[] = {
        {Py_tp_doc, const_cast<char*>("A tensor on any device that every array library can read: by DLPack, "
                                      "as a buffer, by an array interface, or as an Arrow array.")},
        {Py_tp_dealloc, reinterpret_cast<void*>(chained_object::dealloc_in_turn<dealloc_tensor>)},
        {Py_tp_traverse, reinterpret_cast<void*>(traverse_tensor)},
        {Py_tp_repr, reinterpret_cast<void*>(repr_of_tensor)},
        {Py_mp_length, reinterpret_cast<void*>(length_of_tensor)},
        {Py_nb_int, reinterpret_cast<void*>(tensor_protocols::as_int)},
        {Py_nb_float, reinterpret_cast<void*>(tensor_protocols::as_float)},
        {Py_nb_bool, reinterpret_cast<void*>(tensor_protocols::as_bool)},
        {Py_nb_index, reinterpret_cast<void*>(tensor_protocols::as_index)},
        {Py_tp_getset, properties},
        {Py_tp_methods, methods},
        {Py_tp_members, members},
        {Py_bf_getbuffer, reinterpret_cast<void*>(tensor_protocols::get_buffer)},
        {Py_bf_releasebuffer, reinterpret_cast<void*>(tensor_protocols::release_buffer)},
        {0, nullptr},
    };
    PyType_Spec spec = {
        "tenon.Tensor",
        sizeof(tensor_object),
        0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE |
            Py_TPFLAGS_DISALLOW_INSTANTIATION,
        slots,
    };
    ref type = ref::take(PyType_FromSpec(&spec));
    if (!type || !publish_table<tensor_source>(reinterpret_cast<PyTypeObject*>(type.get()))) return nullptr;
    PyType_Modified(reinterpret_cast<PyTypeObject*>(type.get()));
    return type.release();
}

}  // namespace detail

/// The type of what `to_python` returns in this interpreter: borrowed, or null with an exception set.
[[nodiscard]] inline PyTypeObject* producer_type() noexcept {
    interpreter* const here = interpreter::current();
    if (here == nullptr) return nullptr;
    return reinterpret_cast<PyTypeObject*>(
        interpreter::make_once(here->producer_type, &detail::make_producer_type));
}

/// The tensor inside an object of `producer_type()`.
[[nodiscard]] inline const tensor* held_tensor(PyObject* self) noexcept {
    return &detail::as_tensor_object(self)->held;
}

namespace detail {

/// Remembers what is queued on the stream of a GPU's tensor: an object of Python's may outlive the stream.
[[nodiscard]] inline bool remember_work(tensor& t, gpu::ready_event& ready) noexcept {
    const device where = t.device();
    if ((!where.is_cuda_memory() && !where.is_rocm()) || t.stream() == gpu::default_stream(where))
        return true;
    if (t.empty()) {  // no work is ever done on nothing
        t.set_stream(nullptr);
        return true;
    }
    return succeeded(without_gil([&] { return gpu::remember(where, t.stream(), ready); }));
}

}  // namespace detail

/// A producer object over the tensor: any library can read it, as often as it likes, and it lives as long as
/// any of them looks at it. What is queued on the tensor's stream by then, every consumer waits for. Null
/// with an exception set on failure, and `t` is then left as it was. Needs an attached thread state.
[[nodiscard]] inline PyObject* to_python(tensor&& t) noexcept {
    PyTypeObject* const type = producer_type();
    gpu::ready_event ready;
    if (type == nullptr || !detail::remember_work(t, ready)) return nullptr;
    PyObject* const self = type->tp_alloc(type, 0);
    if (self == nullptr) return nullptr;
    detail::as_tensor_object(self)->head.home = interpreter::current();
    new (&detail::as_tensor_object(self)->held) tensor(std::move(t));
    new (&detail::as_tensor_object(self)->ready) gpu::ready_event(std::move(ready));
    return self;
}

PyObject* to_python(tensor& t) = delete;  // say std::move(t): there is no second tensor over the same memory

/// The same for memory just taken over: an error of `tensor::own` is raised.
[[nodiscard]] inline PyObject* to_python(result<tensor> t) noexcept {
    if (!t) return raise(t.error(), "tenon: ");
    const detail::taken taken(*t);
    return to_python(std::move(*t));
}

inline PyObject* detail::tensor_source::wrap(tensor&& t) noexcept { return to_python(std::move(t)); }

}  // namespace tenon::py
