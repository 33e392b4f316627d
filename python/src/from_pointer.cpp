// python/src/from_pointer.cpp: memory that is known by its address alone becomes a Tensor.
#include "../../src/py/export/all.hpp"

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

/// What a pointer's memory belongs to: a Python object, so that the collector sees through it. Its deleter
/// runs when it is deallocated, and then nobody can look at the memory.
///
/// Not so simple where the collector takes a cycle apart: what the deleter needs would be cleared before.
/// Therefore the collector, which tells whatever it is about to take apart, is shown an *heir* that it has
/// not seen yet and that has the deleter now. This is a reference from outside, so the deleter stays whole,
/// and runs when the memory is deallocated. If it reaches the memory itself (`free.t`, `self.free`) that is
/// kept, too, until another collection finds nothing but them: then all finalizers of the cycle have run, and
/// the heir's, which is the deleter, is the last.
struct memory_object {
    py::chained_object head;  // `owner=t.owner` makes chains of them
    PyObject* owner;
    PyObject* deleter;
    void* address;
    memory_object* heir;  ///< unknown to the collector until it is needed; an heir has none
};

/// Deleters that heirs have.
std::atomic<int> inherited{0};

int traverse_memory(PyObject* self, visitproc visit, void* arg) noexcept {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(reinterpret_cast<memory_object*>(self)->owner);
    Py_VISIT(reinterpret_cast<memory_object*>(self)->deleter);
    Py_VISIT(reinterpret_cast<memory_object*>(self)->heir);
    return 0;
}

/// Once, whoever has it.
void run_deleter(memory_object* memory) noexcept {
    const py::ref deleter = py::ref::take(std::exchange(memory->deleter, nullptr));
    if (!deleter) return;
    if (memory->heir == nullptr) --inherited;
    const py::ref address = py::ref::take(PyLong_FromVoidPtr(memory->address));
    const py::ref done =
        address ? py::ref::take(py::call::one_argument(deleter.get(), address.get())) : py::ref();
    if (!done) py::call::write_unraisable(deleter.get());
}

// Whoever has everything collected expects it to be gone: what was kept for its deleter is looked at once
// more, as soon as the collection is over. Collections of the young come often, and leave it to later ones.
std::atomic<bool> kept_something{false};  ///< the collection that is going on

int collect_again(void*) noexcept {
    const py::error_guard keep;
    const py::ref gc = py::ref::take(py::call::import_module("gc"));
    const py::ref found = gc ? py::ref::take(py::call::method(gc.get(), "collect", nullptr)) : py::ref();
    return 0;
}

/// `gc.callbacks` calls it with a phase and a dictionary.
PyObject* collection_goes_on(PyObject*, PyObject* const* args, Py_ssize_t count) noexcept {
    const py::error_guard keep;
    if (count == 2 && PyUnicode_Check(args[0]) && PyDict_Check(args[1]) &&
        PyUnicode_CompareWithASCIIString(args[0], "stop") == 0 && kept_something.exchange(false) &&
        inherited > 0) {
        const py::ref generation = py::ref::take(py::call::dict_item(args[1], "generation"));
        // Full or not: only a later collection is lost.
        if (generation && PyLong_Check(generation.get()) && PyLong_AsLong(generation.get()) == 2)
            static_cast<void>(Py_AddPendingCall(collect_again, nullptr));
    }
    Py_RETURN_NONE;
}

void ask_for_another_collection() noexcept {
    static PyMethodDef definition = {"collect_again", py::detail::as_method(collection_goes_on),
                                     METH_FASTCALL, nullptr};
    static std::atomic<bool> listens{false};
    if (py::is_finalizing() || PyInterpreterState_Get() != PyInterpreterState_Main()) return;
    kept_something = true;
    if (listens.exchange(true)) return;
    const py::error_guard keep;
    const py::ref gc = py::ref::take(py::call::import_module("gc"));
    const py::ref callbacks = gc ? py::ref::take(py::call::attr(gc.get(), "callbacks")) : py::ref();
    const py::ref function = py::ref::take(PyCFunction_New(&definition, nullptr));
    if (callbacks && function && PyList_Check(callbacks.get()))
        static_cast<void>(PyList_Append(callbacks.get(), function.get()));
}

/// Called by the collector alone, before it takes anything apart.
void finalize_memory(PyObject* self) noexcept {
    auto* const memory = reinterpret_cast<memory_object*>(self);
    if (memory->deleter == nullptr) return;
    if (memory->heir == nullptr) {
        const py::error_guard keep;
        run_deleter(memory);
        return;
    }
    memory->heir->deleter = std::exchange(memory->deleter, nullptr);
    ++inherited;
    PyObject_GC_Track(reinterpret_cast<PyObject*>(memory->heir));
    ask_for_another_collection();
}

void dealloc_memory(PyObject* self) noexcept {
    auto* const memory = reinterpret_cast<memory_object*>(self);
    PyTypeObject* const type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    {
        const py::error_guard keep;  // the deleter may not see what is pending
        run_deleter(memory);
        if (memory->heir != nullptr) run_deleter(memory->heir);
        py::call::drop(reinterpret_cast<PyObject*>(memory->heir));
        py::call::drop(memory->owner);
    }
    type->tp_free(self);
    Py_DECREF(type);
}

/// Memory and its heir, without a deleter yet; null with an exception set.
[[nodiscard]] memory_object* make_memory(PyTypeObject* type, PyObject* owner, void* address,
                                         py::interpreter* home) noexcept {
    py::ref made = py::ref::take(type->tp_alloc(type, 0));
    auto* const memory = reinterpret_cast<memory_object*>(made.get());
    if (memory == nullptr) return nullptr;
    memory->head.home = home;
    auto* const heir = PyObject_GC_New(memory_object, type);  // not tracked
    if (heir == nullptr) return nullptr;
    heir->head.home = home;
    heir->owner = heir->deleter = nullptr;
    heir->heir = nullptr;
    heir->address = memory->address = address;
    memory->owner = py::ref::borrow(owner).release();
    memory->heir = heir;
    return reinterpret_cast<memory_object*>(made.release());
}

}  // namespace

PyObject* make_memory_type(PyObject* module) noexcept {
    PyType_Slot slots[] = {
        {Py_tp_doc, const_cast<char*>("What the memory of tenon.from_pointer belongs to.")},
        {Py_tp_traverse, reinterpret_cast<void*>(traverse_memory)},
        {Py_tp_dealloc, reinterpret_cast<void*>(py::chained_object::dealloc_in_turn<dealloc_memory>)},
        {Py_tp_finalize, reinterpret_cast<void*>(finalize_memory)},
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
    if (!has_arguments("from_pointer", 9, count)) return nullptr;
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
        !read_flag("readonly", args[5], readonly) || !read_flag("padded", args[6], padded))
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
        memory = make_memory(memory_type, args[7], address, here);
        if (memory == nullptr) return nullptr;
        keeper = py::ref::take(reinterpret_cast<PyObject*>(memory));
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
