// python/src/tensor_type.cpp: the Python type tenon.Tensor: properties, repr, and DLPack out.
#include "tensor_type.hpp"

#include <structmember.h>

#include <cstddef>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include <tenon/core/copy.hpp>
#include <tenon/core/dtype_names.hpp>
#include <tenon/py/acquired.hpp>
#include <tenon/py/export.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/py/ref.hpp>
#include "arguments.hpp"

namespace tenon::module {

namespace {

using py::ref;

struct tensor_object {
    PyObject_HEAD PyObject*
        weak_references;         // first, so that its offset is known without asking a C++ type for it
    std::optional<tensor> held;  // empty only once the garbage collector has broken a cycle
};

tensor_object* as_object(PyObject* self) noexcept { return reinterpret_cast<tensor_object*>(self); }

/// The tensor, or null with an exception set.
const tensor* get(PyObject* self) noexcept {
    const tensor* const held = held_tensor(self);
    if (held != nullptr) return held;
    PyErr_SetString(PyExc_ValueError, "tenon: this Tensor has been cleared by the garbage collector");
    return nullptr;
}

/// The Python object the tensor's memory belongs to, where that can be known: the collector must see it.
PyObject* visible_owner(const tensor& t) noexcept {
    const keep_alive& owner = t.owner();
    if (owner.release_function() == py::detail::release_object)
        return static_cast<PyObject*>(owner.subject());
    if (owner.release_function() == py::detail::release_buffer)
        return static_cast<Py_buffer*>(owner.subject())->obj;
    return nullptr;
}

int traverse(PyObject* self, visitproc visit, void* arg) noexcept {
    Py_VISIT(Py_TYPE(self));
    const auto& held = as_object(self)->held;
    if (held) Py_VISIT(visible_owner(*held));
    return 0;
}

int clear(PyObject* self) noexcept {
    // Emptied before the owner goes: its finalizer may look at this object.
    const std::optional<tensor> last = std::exchange(as_object(self)->held, std::nullopt);
    return 0;
}

void dealloc(PyObject* self) noexcept {
    PyTypeObject* const type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    // A Tensor can keep a Tensor that keeps a Tensor...: the chain is taken down without recursing.
    Py_TRASHCAN_BEGIN(self, dealloc) if (as_object(self)->weak_references != nullptr)
        PyObject_ClearWeakRefs(self);
    as_object(self)->held.~optional();
    type->tp_free(self);
    Py_DECREF(type);
    Py_TRASHCAN_END
}

PyObject* tuple_of(extents values) noexcept {
    ref out = ref::take(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
    for (std::size_t i = 0; out && i < values.size(); ++i) {
        PyObject* const number = PyLong_FromLongLong(values[i]);
        if (number == nullptr) return nullptr;
        PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), number);
    }
    return out.release();
}

PyObject* text_of(const std::string& text) noexcept {
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

/// A property: what `Read` makes of the tensor.
template <auto Read>
PyObject* property(PyObject* self, void*) noexcept {
    const tensor* const t = get(self);
    if (t == nullptr) return nullptr;
    try {
        return Read(*t);
    } catch (const std::bad_alloc&) {
        return PyErr_NoMemory();
    }
}

template <auto Read>
constexpr PyGetSetDef make_property(const char* name, const char* doc) noexcept {
    return {name, property<Read>, nullptr, doc, nullptr};
}

PyGetSetDef properties[] = {
    make_property<[](const tensor& t) { return tuple_of(t.shape()); }>("shape", "Extent of each axis."),
    make_property<[](const tensor& t) { return tuple_of(t.strides()); }>(
        "strides", "Step along each axis, in elements (not bytes)."),
    make_property<[](const tensor& t) { return text_of(name(t.dtype())); }>("dtype",
                                                                            "Name of the element type."),
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
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

std::string describe(const tensor& t) {
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
    return out + ")";
}

PyObject* repr(PyObject* self) noexcept {
    return property<[](const tensor& t) { return text_of(describe(t)); }>(self, nullptr);
}

PyObject* dlpack_device(PyObject* self, PyObject*) noexcept {
    return property<[](const tensor& t) { return Py_BuildValue("(ii)", t.device().type, t.device().id); }>(
        self, nullptr);
}

/// Whether the request names the memory as it is: its own device, or the CPU for memory the host can read.
bool delivers_to(const tensor& t, const std::optional<device>& where) noexcept {
    return !where || *where == t.device() || (*where == device{} && t.device().is_host_accessible());
}

PyObject* dlpack(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) noexcept {
    static constexpr const char* allowed[] = {"stream", "max_version", "dl_device", "copy", nullptr};
    if (count != 0) {
        PyErr_SetString(PyExc_TypeError, "__dlpack__() takes keyword arguments only");
        return nullptr;
    }
    keywords asked;
    if (!read_keywords("__dlpack__", allowed, names, args, asked)) return nullptr;
    const tensor* const t = get(self);
    if (t == nullptr) return nullptr;
    if (asked.stream && *asked.stream != -1 && t->device().is_host_accessible()) {
        PyErr_SetString(PyExc_ValueError, "tenon: stream must be None for a tensor in host memory");
        return nullptr;
    }
    if (!delivers_to(*t, asked.where)) {
        PyErr_SetString(PyExc_BufferError, "tenon: this tensor cannot be exported to the device asked for");
        return nullptr;
    }
    const bool versioned = asked.major && *asked.major >= 1;
    if (asked.copy != true) return py::to_capsule(*t, self, versioned);

    result<tensor> copied = copy_to_host(*t);
    if (!copied) {
        py::raise(copied.error(), "tenon: ");
        return nullptr;
    }
    const ref fresh = ref::take(wrap_tensor(Py_TYPE(self), std::move(*copied)));
    const tensor* const made = fresh ? get(fresh.get()) : nullptr;
    return made != nullptr ? py::to_capsule(*made, fresh.get(), versioned, true) : nullptr;
}

PyObject* refuse_pickling(PyObject*, PyObject*) noexcept {
    PyErr_SetString(PyExc_TypeError,
                    "tenon: a Tensor is a view of memory it does not own and cannot be pickled; "
                    "pickle the array it came from");
    return nullptr;
}

PyMethodDef methods[] = {
    {"__reduce_ex__", refuse_pickling, METH_O, nullptr},
    {"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(dlpack)),
     METH_FASTCALL | METH_KEYWORDS, "Export as a DLPack capsule."},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, "The device as a (type, id) pair."},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, sizeof(PyObject), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_doc,
     const_cast<char*>("A tensor of any library, on any device, as Tenon sees it. Made by asdlpack().")},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, nullptr},
};

PyType_Spec spec = {
    "tenon.Tensor",
    sizeof(tensor_object),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots,
};

}  // namespace

const tensor* held_tensor(PyObject* self) noexcept {
    const auto& held = as_object(self)->held;
    return held ? &*held : nullptr;
}

PyObject* make_tensor_type(PyObject* module) noexcept {
    return PyType_FromModuleAndSpec(module, &spec, nullptr);
}

PyObject* wrap_tensor(PyTypeObject* type, tensor&& t) noexcept {
    auto* const self = reinterpret_cast<tensor_object*>(type->tp_alloc(type, 0));
    if (self == nullptr) return nullptr;
    new (&self->held) std::optional<tensor>(std::move(t));
    return reinterpret_cast<PyObject*>(self);
}

}  // namespace tenon::module
