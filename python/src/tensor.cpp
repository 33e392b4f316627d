// python/src/tensor.cpp: the type tenon.Tensor: what it has beyond the protocols that every module's own type
// has, and how the tensors of other modules become objects of it.
#include "../../src/py/export/all.hpp"

#include "functions.hpp"

namespace tenon::module {

namespace {

using py::ref;
using py::detail::as_tensor_object;
using py::detail::make_property;
using py::detail::only_element;
using py::detail::tensor_object;
using py::detail::tensor_source;
using py::detail::text_of;
using py::detail::tuple_of;

// --- what it says of itself -------------------------------------------------------------------------

/// The owner as people want to know it: of a Tensor over a Tensor, what the last of them belongs to.
/// Borrowed; None where only its producer knows.
[[nodiscard]] PyObject* root_owner_of(const tensor_object& t) noexcept {
    PyObject* owner = py::detail::owner_of(t);
    const py::interpreter* const here = py::interpreter::current();
    if (here == nullptr) PyErr_Clear();
    while (owner != nullptr && here != nullptr && tensor_source::is_own(owner, *here)) {
        PyObject* const next = py::detail::owner_of(*as_tensor_object(owner));
        if (next == nullptr) break;
        owner = next;
    }
    return owner != nullptr ? owner : Py_None;
}

/// "numpy.ndarray", "bytes": the package and the class.
[[nodiscard]] std::string short_type_name(PyObject* obj) {
    const ref held = py::class_of(obj);
    const std::string package = py::detail::defining_package(py::as_type(held));
    const std::string_view full = py::as_type(held)->tp_name;
    const std::string_view last = full.substr(full.rfind('.') + 1);
    return (package == "builtins" || package == full ? "" : package + ".") + std::string(last);
}

[[nodiscard]] std::string describe_in_words(PyObject* self) {
    const tensor& t = as_tensor_object(self)->held;
    const auto list = [](extents values) {
        std::string out = "(";
        for (std::size_t i = 0; i < values.size(); ++i)
            out += (i != 0 ? ", " : "") + std::to_string(values[i]);
        return out + (values.size() == 1 ? ",)" : ")");
    };
    std::string out = Py_TYPE(self)->tp_name + ("(shape=" + list(t.shape()) + ", dtype=" + name(t.dtype()) +
                                                ", device=" + name(t.device()));
    if (!t.is_c_contiguous()) out += ", strides=" + list(t.strides());
    if (t.is_read_only()) out += ", readonly";
    if (PyObject* const owner = root_owner_of(*as_tensor_object(self)); owner != Py_None)
        out += ", owner=" + short_type_name(owner);
    return out + ")";
}

PyObject* repr_of(PyObject* self) noexcept try {
    return text_of(describe_in_words(self));
} catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
}

/// As the stand-in has it, but TypeError where NumPy has no word: it asks for one wherever it looks for
/// types.
[[nodiscard]] PyObject* numpy_dtype_of(const tensor_object& t) noexcept {
    PyObject* const made = py::detail::numpy_dtype_of(t);
    if (made != nullptr || PyErr_ExceptionMatches(PyExc_BufferError) == 0) return made;
    const ref refusal = py::pending_exception();
    const ref text = ref::take(foreign_code([&] { return PyObject_Str(refusal.get()); }));
    if (text) PyErr_SetObject(PyExc_TypeError, text.get());
    return nullptr;
}

PyGetSetDef properties[] = {
    make_property<[](const tensor_object& t) { return tuple_of(t.held.strides()); }>(
        "strides", "Step along each axis, in elements (not bytes)."),
    make_property<numpy_dtype_of>("__numpy_dtype__", "NumPy's word for the element type."),
    make_property<[](const tensor_object& t) { return PyLong_FromLong(t.held.ndim()); }>("ndim",
                                                                                         "Number of axes."),
    make_property<[](const tensor_object& t) { return PyLong_FromLongLong(t.held.size()); }>(
        "size", "Number of elements."),
    make_property<[](const tensor_object& t) { return PyLong_FromLongLong(t.held.nbytes()); }>(
        "nbytes", "Bytes the elements take side by side."),
    make_property<[](const tensor_object& t) { return PyLong_FromLongLong(t.held.itemsize()); }>(
        "itemsize", "Bytes of one element standing alone."),
    make_property<[](const tensor_object& t) { return PyLong_FromVoidPtr(t.held.data()); }>(
        "data_ptr", "Address of the first element."),
    make_property<[](const tensor_object& t) {
        const device where = t.held.device();
        if (!where.is_cuda_memory() && !where.is_rocm()) Py_RETURN_NONE;
        return PyLong_FromVoidPtr(t.held.stream());
    }>("stream", "The stream the memory was made on, as a handle (1: CUDA's default); None for host memory."),
    make_property<[](const tensor_object& t) { return PyBool_FromLong(t.held.is_read_only() ? 1 : 0); }>(
        "readonly", "Whether the memory must not be written to."),
    make_property<[](const tensor_object& t) { return PyBool_FromLong(t.held.is_c_contiguous() ? 1 : 0); }>(
        "is_contiguous", "Whether the elements lie in row-major order without gaps."),
    make_property<[](const tensor_object& t) { return PyLong_FromUnsignedLongLong(t.held.flags()); }>(
        "flags", "The DLPack flag bits: 1 read-only, 2 copied, 4 sub-byte elements padded to bytes."),
    make_property<[](const tensor_object& t) {
        const abi::dl_version version = t.held.version();
        if (version.major == 0) Py_RETURN_NONE;
        return Py_BuildValue("(II)", version.major, version.minor);
    }>("version", "DLPack version the producer stated, or None when its protocol states none."),
    make_property<[](const tensor_object& t) { return ref::borrow(root_owner_of(t)).release(); }>(
        "owner", "The object the memory belongs to, or None where only its producer knows."),
};

// --- what it is to Python ---------------------------------------------------------------------------

PyObject* as_complex(PyObject* self, PyObject*) noexcept {
    const ref number = only_element(tensor_source::source, self, "complex()");
    if (!number) return nullptr;
    // no foreign code: a number of Python's own
    return PyComplex_FromCComplex(PyComplex_AsCComplex(number.get()));
}

/// Integers without axes alone: where there are axes, `bytes(t)` must find the memory and not a length.
PyObject* as_index(PyObject* self) noexcept {
    const tensor& t = as_tensor_object(self)->held;
    if (t.ndim() == 0 && t.dtype().is_integer())
        return only_element(tensor_source::source, self, "operator.index()").release();
    PyErr_SetString(PyExc_TypeError,
                    "tenon: only a Tensor of one integer and without axes is an index; use int()");
    return nullptr;
}

/// Python would take an index for a length.
PyObject* as_bytes(PyObject* self, PyObject*) noexcept {
    return foreign_code([&] { return PyBytes_FromObject(self); });
}

PyMethodDef methods[] = {
    {"__complex__", as_complex, METH_NOARGS, nullptr},
    {"__bytes__", as_bytes, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

// --- tensors of other modules -----------------------------------------------------------------------

/// `handover_api::take`: everything is checked anew.
int take_parts(const abi::tensor_parts* parts, void** out) noexcept {
    py::interpreter* const here = py::interpreter::current();
    if (here == nullptr) return -1;
    if (parts == nullptr || out == nullptr || parts->size < sizeof *parts) {
        py::raise(malformed("tensor", "its parts are not all there"), "tenon: ");
        return -1;
    }
    keep_alive owner(parts->subject, reinterpret_cast<keep_alive::release_fn>(parts->release), parts->context,
                     parts->is_plain_memory != 0 ? owner_kind::memory : owner_kind::other);
    const std::uint64_t marks = parts->flags & detail::mark::all;
    auto t = tensor::adopt(parts->tensor, parts->flags & ~marks, parts->version, owner);
    if (t) {
        detail::validator::add_marks(*t, marks);
        t->set_stream(parts->stream);
        if (parts->is_capture_going_on != nullptr) gpu::watch_for_module(parts->is_capture_going_on);
        *out = py::detail::make_tensor_object(*t, *here, static_cast<PyObject*>(parts->referenced),
                                              static_cast<PyObject*>(parts->owner));
        if (*out != nullptr) return 0;
        t->disown();  // it stays with the module that sent it
    } else {
        owner.disown();
        py::raise(t.error(), "tenon: ");
    }
    return -1;
}

constexpr abi::handover_api handover{{{abi::handover_major, abi::handover_minor}, nullptr}, &take_parts};

}  // namespace

PyObject* make_tensor_type() noexcept {
    const PyType_Slot more[] = {
        {Py_tp_repr, reinterpret_cast<void*>(repr_of)},
        {Py_nb_index, reinterpret_cast<void*>(as_index)},
        {Py_tp_methods, methods},
    };
    ref type = ref::take(py::detail::make_tensor_type("tenon.Tensor", more));
    if (!type) return nullptr;
    for (PyGetSetDef& property : properties) {
        ref descriptor = ref::take(PyDescr_NewGetSet(py::as_type(type), &property));
        if (!py::detail::add_to_type(py::as_type(type), property.name, std::move(descriptor))) return nullptr;
    }
    PyType_Modified(py::as_type(type));
    // Other modules find the way from the type's exchange table to this one.
    py::detail::tables_of<tensor_source::source>.exchange.header.prev_api =
        const_cast<abi::exchange_api_header*>(&handover.header);
    return type.release();
}

}  // namespace tenon::module
