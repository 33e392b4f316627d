// python/src/from_pointer.cpp: memory that is known by its address alone becomes a Tensor.
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <tenon/py/arguments.hpp>
#include <tenon/py/chained_object.hpp>
#include <tenon/py/export.hpp>

#include "functions.hpp"

namespace tenon::module {

namespace {

namespace argument = py::argument;

constexpr long long lowest = std::numeric_limits<std::int64_t>::min();
constexpr long long highest = std::numeric_limits<std::int64_t>::max();

/// A tuple of integers: extents or strides.
[[nodiscard]] bool read_axes(const char* name, const char* wanted, PyObject* value,
                             std::vector<std::int64_t>& out) {
    if (!PyTuple_Check(value)) return argument::wrong(name, wanted, value);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) {
        long long number = 0;
        if (!argument::read_integer(name, wanted, PyTuple_GET_ITEM(value, i), lowest, highest, number))
            return false;
        out.push_back(number);
    }
    return true;
}

[[nodiscard]] bool read_address(PyObject* value, void*& out) noexcept {
    static constexpr const char* wanted = "an address: an integer that is not negative";
    const py::ref number =
        PyIndex_Check(value) != 0 && !PyBool_Check(value) ? py::ref::take(py::call::index(value)) : py::ref();
    if (!number) return PyErr_Occurred() != nullptr ? false : argument::wrong("ptr", wanted, value);
    out = PyLong_AsVoidPtr(number.get());
    if (out != nullptr || PyErr_Occurred() == nullptr) {
        // AsVoidPtr takes negative numbers for large ones.
        int overflow = 0;
        if (PyLong_AsLongLongAndOverflow(number.get(), &overflow) >= 0 || overflow > 0) return true;
    }
    PyErr_Clear();
    return argument::wrong("ptr", wanted, value);
}

[[nodiscard]] bool read_dtype(PyObject* value, dtype& out) {
    static constexpr const char* wanted = "a (code, bits, lanes) triple";
    std::vector<std::int64_t> triple;
    if (!read_axes("dtype", wanted, value, triple)) return false;
    if (triple.size() != 3 || triple[0] < 0 || triple[0] > 255 || triple[1] < 1 || triple[1] > 255 ||
        triple[2] < 1 || triple[2] > 65535)
        return argument::wrong("dtype", wanted, value);
    out = dtype(static_cast<std::uint8_t>(triple[0]), static_cast<std::uint8_t>(triple[1]),
                static_cast<std::uint16_t>(triple[2]));
    return true;
}

/// What a pointer's memory belongs to: a Python object, so that the collector sees through it. It has no
/// finalizer: those of a whole garbage cycle run before anything is taken apart, while others may still look
/// at the memory. Its deleter runs when it is deallocated, and then nobody can.
struct memory_object {
    py::chained_object head;  // `owner=t.owner` makes chains of them
    PyObject* owner;
    PyObject* deleter;
    void* address;
};

int traverse_memory(PyObject* self, visitproc visit, void* arg) noexcept {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(reinterpret_cast<memory_object*>(self)->owner);
    Py_VISIT(reinterpret_cast<memory_object*>(self)->deleter);
    return 0;
}

void dealloc_memory(PyObject* self) noexcept {
    auto* const memory = reinterpret_cast<memory_object*>(self);
    PyTypeObject* const type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    {
        const py::error_guard keep;  // the deleter may not see what is pending
        if (memory->deleter != nullptr) {
            const py::ref address = py::ref::take(PyLong_FromVoidPtr(memory->address));
            const py::ref done =
                address ? py::ref::take(py::call::one_argument(memory->deleter, address.get())) : py::ref();
            if (!done) PyErr_WriteUnraisable(memory->deleter);
        }
        py::call::drop(memory->deleter);
        py::call::drop(memory->owner);
    }
    type->tp_free(self);
    Py_DECREF(type);
}

}  // namespace

PyObject* make_memory_type(PyObject* module) noexcept {
    PyType_Slot slots[] = {
        {Py_tp_doc, const_cast<char*>("What the memory of tenon.from_pointer belongs to.")},
        {Py_tp_traverse, reinterpret_cast<void*>(traverse_memory)},
        {Py_tp_dealloc, reinterpret_cast<void*>(py::chained_object::dealloc_in_turn<dealloc_memory>)},
        {0, nullptr},
    };
    PyType_Spec spec = {
        "tenon.Memory",
        sizeof(memory_object),
        0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE |
            Py_TPFLAGS_DISALLOW_INSTANTIATION,
        slots,
    };
    return PyType_FromModuleAndSpec(module, &spec, nullptr);
}

/// `(ptr, shape, strides or None, dtype triple, device, readonly, padded, owner, deleter or None)`: the
/// package's from_pointer has read what people write. The owner lives as long as anybody looks at the memory,
/// and then the deleter is called. What is refused is not released.
PyObject* from_pointer(PyObject* module, PyObject* const* args, Py_ssize_t count) noexcept try {
    if (count != 9) {
        PyErr_Format(PyExc_TypeError, "_core.from_pointer() takes 9 arguments (%zd given)", count);
        return nullptr;
    }
    void* address = nullptr;
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;
    dtype type;
    std::optional<device> where;
    bool readonly = false;
    bool padded = false;
    if (!read_address(args[0], address) || !read_axes("shape", "a tuple of integers", args[1], shape) ||
        (args[2] != Py_None &&
         !read_axes("strides", "None or a tuple of integers, counted in elements", args[2], strides)) ||
        !read_dtype(args[3], type) || !read_any_device(args[4], where) ||
        !argument::read_flag("readonly", args[5], readonly) ||
        !argument::read_flag("padded", args[6], padded))
        return nullptr;
    PyObject* const deleter = args[8];
    if (deleter != Py_None && PyCallable_Check(deleter) == 0)
        return argument::wrong("deleter", "None or a function of the address", deleter), nullptr;

    const device place = where.value_or(device{});
    tensor_info info = args[2] == Py_None ? tensor_info::contiguous(address, type, shape, place)
                                          : tensor_info::strided(address, type, shape, strides, place);
    if (readonly) info = info.read_only();
    if (padded) info = info.padded();
    py::interpreter* const here = py::interpreter::current();
    if (here == nullptr) return nullptr;
    py::ref keeper = py::ref::borrow(args[7]);
    memory_object* memory = nullptr;
    if (deleter != Py_None) {
        PyTypeObject* const memory_type = memory_type_of(module);
        if (memory_type == nullptr) {
            PyErr_SetString(PyExc_RuntimeError, "tenon: the interpreter is going down");
            return nullptr;
        }
        keeper = py::ref::take(memory_type->tp_alloc(memory_type, 0));
        if (!keeper) return nullptr;
        memory = reinterpret_cast<memory_object*>(keeper.get());
        memory->head.home = here;
        memory->owner = py::ref::borrow(args[7]).release();
        memory->address = address;
    }
    auto made = tensor::own(info, py::detail::keep_object(keeper.get(), here));
    if (!made) return py::raise(made.error(), "tenon: from_pointer(): ");
    PyObject* const tensor_object = py::to_python(std::move(made));
    if (tensor_object != nullptr && memory != nullptr) memory->deleter = py::ref::borrow(deleter).release();
    return tensor_object;
} catch (...) {
    py::raise_caught();
    return nullptr;
}

}  // namespace tenon::module
