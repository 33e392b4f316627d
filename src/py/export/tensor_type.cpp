// src/py/export/tensor_type.cpp: the Python type `Tensor`: a tensor that any library can read, as often as it
// likes.
//
// There is one, the package's. A module hands tensors to it by a C table, so that any two compilers and
// versions get along. Where the package cannot be imported, a type of the module's own stands in for it.
#include "all.hpp"

#include <structmember.h>  // the members of types, which 3.12 moved into Python.h

namespace tenon::py {

namespace detail {

/// A function of `answer` for Tensor.
template <auto Function>
inline constexpr auto answer_of_tensor TENON_PRIVATE = bound_answer<tensor_source::source, Function>::call;

/// Python would take an index for a length.
inline PyObject* tensor_as_bytes(PyObject* self, PyObject*) noexcept {
    return foreign_code([&] { return PyBytes_FromObject(self); });
}

/// There is no tp_clear, as for tuples: a Tensor cannot be changed, so a cycle through it goes through
/// something that can, and is broken there. Who looks at the memory while that happens finds it whole.
inline int traverse_tensor(PyObject* self, visitproc visit, void* arg) noexcept {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(visible_owner(*as_tensor_object(self)));
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

[[nodiscard]] inline std::string describe_in_words(PyObject* self) {
    const tensor& t = as_tensor_object(self)->held;
    const auto list = [](extents values) {
        std::string out = "(";
        for (std::size_t i = 0; i < values.size(); ++i)
            out += (i != 0 ? ", " : "") + std::to_string(values[i]);
        return out + (values.size() == 1 ? ",)" : ")");
    };
    std::string out = Py_TYPE(self)->tp_name + ("(shape=" + list(t.shape())) + ", dtype=" + name(t.dtype()) +
                      ", device=" + name(t.device());
    if (!t.is_c_contiguous()) out += ", strides=" + list(t.strides());
    if (t.is_read_only()) out += ", readonly";
    if (PyObject* const owner = root_owner_of(*as_tensor_object(self)); owner != nullptr && owner != Py_None)
        out += ", owner=" + short_type_name(owner);
    return out + ")";
}

inline PyObject* repr_of_tensor(PyObject* self) noexcept try {
    return text_of(describe_in_words(self));
} catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
}
inline PyObject* owner_of_tensor(PyObject* self, void*) noexcept {
    PyObject* const owner = root_owner_of(*as_tensor_object(self));
    return ref::borrow(owner != nullptr ? owner : Py_None).release();
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

/// A new object of this module's own type, which takes the tensor; null with an exception set, and `t` left
/// as it was. The two objects are what another module says of the owner: see tensor_object.
[[nodiscard]] inline PyObject* make_tensor_object(tensor& t, interpreter& here, PyObject* referenced,
                                                  PyObject* owner) noexcept {
    PyTypeObject* const type = producer_type();
    gpu::ready_event ready;
    if (type == nullptr || !remember_work(t, ready)) return nullptr;
    PyObject* const self = type->tp_alloc(type, 0);
    if (self == nullptr) return nullptr;
    tensor_object& made = *as_tensor_object(self);
    made.head.home = &here;
    new (&made.held) tensor(std::move(t));
    new (&made.ready) gpu::ready_event(std::move(ready));
    made.referenced = referenced;
    made.owner = owner;
    return self;
}

/// `handover_api::take`: everything is checked anew.
inline int take_parts(const abi::tensor_parts* parts, void** out) noexcept {
    interpreter* const here = interpreter::current();
    if (here == nullptr) return -1;
    if (parts == nullptr || out == nullptr || parts->size < sizeof *parts) {
        raise(malformed("tensor", "its parts are not all there"), "tenon: ");
        return -1;
    }
    keep_alive owner(parts->subject, reinterpret_cast<keep_alive::release_fn>(parts->release), parts->context,
                     parts->is_plain_memory != 0 ? owner_kind::memory : owner_kind::other);
    const std::uint64_t marks = parts->flags & tenon::detail::mark::all;
    auto t = tensor::adopt(parts->tensor, parts->flags & ~marks, parts->version, owner);
    if (t) {
        tenon::detail::validator::add_marks(*t, marks);
        t->set_stream(parts->stream);
        if (parts->is_capture_going_on != nullptr)
            gpu::detail_done::watch_for_module(parts->is_capture_going_on);
        *out = make_tensor_object(*t, *here, static_cast<PyObject*>(parts->referenced),
                                  static_cast<PyObject*>(parts->owner));
        if (*out != nullptr) return 0;
        t->disown();  // it stays with the module that sent it
    } else {
        owner.disown();
        raise(t.error(), "tenon: ");
    }
    return -1;
}
TENON_PRIVATE inline constexpr abi::handover_api handover{
    {{abi::handover_major, abi::handover_minor}, nullptr}, &take_parts};

/// What a Tensor says of itself, after what the protocols ask for.
[[nodiscard]] TENON_PRIVATE inline PyGetSetDef* tensor_properties() noexcept {
    static PyGetSetDef properties[] = {
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
        {"owner", owner_of_tensor, nullptr,
         "The object the memory belongs to, or None where only its producer knows.", nullptr},
        {nullptr, nullptr, nullptr, nullptr, nullptr},
    };
    return properties;
}

[[nodiscard]] TENON_PRIVATE inline PyObject* make_producer_type(const char* type_name) noexcept {
    producer_tables& tables = tables_of<tensor_source::source>;
    fill_tables(tables, true);
    tables.exchange.header.prev_api = const_cast<abi::exchange_api_header*>(&handover.header);
    static PyMethodDef methods[] = {
        {"__complex__", answer_of_tensor<&answer::as_complex>, METH_NOARGS, nullptr},
        {"__bytes__", tensor_as_bytes, METH_NOARGS, nullptr},
        {"__reduce_ex__", refuse_pickling, METH_O, nullptr},
        {nullptr, nullptr, 0, nullptr},
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
        {Py_nb_int, reinterpret_cast<void*>(tables.as_int)},
        {Py_nb_float, reinterpret_cast<void*>(tables.as_float)},
        {Py_nb_bool, reinterpret_cast<void*>(answer_of_tensor<&answer::as_bool>)},
        {Py_nb_index, reinterpret_cast<void*>(answer_of_tensor<&answer::as_index>)},
        {Py_tp_getset, tensor_properties()},
        {Py_tp_methods, methods},
        {Py_tp_members, members},
        {Py_bf_getbuffer, reinterpret_cast<void*>(tables.get_buffer)},
        {Py_bf_releasebuffer, reinterpret_cast<void*>(tables.release_buffer)},
        {0, nullptr},
    };
    PyType_Spec spec = {
        type_name,
        sizeof(tensor_object),
        0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE |
            Py_TPFLAGS_DISALLOW_INSTANTIATION,
        slots,
    };
    ref type = ref::take(PyType_FromSpec(&spec));
    if (!type || !add_tables(reinterpret_cast<PyTypeObject*>(type.get()), tables)) return nullptr;
    PyType_Modified(reinterpret_cast<PyTypeObject*>(type.get()));
    return type.release();
}

}  // namespace detail

TENON_INLINE PyTypeObject* producer_type() noexcept {
    interpreter* const here = interpreter::current();
    if (here == nullptr) return nullptr;
    const char* const name = here->is_package.load() ? "tenon.Tensor" : "tenon_stand_in.Tensor";
    return reinterpret_cast<PyTypeObject*>(
        interpreter::make_once(here->producer_type, [&] { return detail::make_producer_type(name); }));
}

TENON_INLINE PyObject* to_python(tensor&& t) noexcept {
    interpreter* const here = interpreter::current();
    if (here == nullptr) return nullptr;
    if (const abi::handover_api* const package = detail::package_of(*here))
        return detail::hand_over(*package, t);
    return PyErr_Occurred() == nullptr ? detail::make_tensor_object(t, *here, nullptr, nullptr) : nullptr;
}

TENON_INLINE PyObject* to_python(result<tensor> t) noexcept {
    if (!t) return raise(t.error(), "tenon: ");
    const detail::taken taken(*t);
    return to_python(std::move(*t));
}

}  // namespace tenon::py
