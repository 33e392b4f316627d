// tests/python/native/tenon_exports.cpp: C++ memory handed to Python in every way there is, each release
// counted.
#include <tenon/py.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "../../../src/py/runtime/arguments.hpp"
#include "../../../src/py/runtime/exceptions.hpp"
#include "fake_fields.hpp"

namespace {

using tenon::axes;
using tenon::tensor;
using tenon::tensor_info;
using tenon::py::ref;

// --- what counts --------------------------------------------------------------------------------------

/// Outlives the Python object and every tensor that counts on it.
struct counter {
    std::atomic<int> references{1};
    std::atomic<int> exports{0};
    std::atomic<int> releases{0};
    std::atomic<bool> had_error{false};
    std::atomic<bool> throws{false};
    std::atomic<bool> elsewhere{false};  // the last release came from another thread than the first export
    std::thread::id home = std::this_thread::get_id();

    void hand_out() {
        ++references;
        ++exports;
    }
    void take_back() {
        ++releases;
        if (tenon::py::attached_thread_state() != nullptr && PyErr_Occurred() != nullptr) had_error = true;
        elsewhere = std::this_thread::get_id() != home;
        drop();
    }
    void drop() {
        if (--references == 0) delete this;
    }
};

struct counter_object {
    PyObject_HEAD counter* count;
};
counter* count_of(PyObject* self) { return reinterpret_cast<counter_object*>(self)->count; }

PyObject* new_counter(PyTypeObject* type, PyObject*, PyObject*) {
    PyObject* const self = type->tp_alloc(type, 0);
    if (self != nullptr) reinterpret_cast<counter_object*>(self)->count = new counter;
    return self;
}
void dealloc_counter(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    count_of(self)->drop();
    type->tp_free(self);
    Py_DECREF(type);
}
PyGetSetDef counter_properties[] = {
    {"exports", [](PyObject* self, void*) { return PyLong_FromLong(count_of(self)->exports); }, nullptr,
     nullptr, nullptr},
    {"releases", [](PyObject* self, void*) { return PyLong_FromLong(count_of(self)->releases); }, nullptr,
     nullptr, nullptr},
    {"had_error", [](PyObject* self, void*) { return PyBool_FromLong(count_of(self)->had_error); }, nullptr,
     nullptr, nullptr},
    {"elsewhere", [](PyObject* self, void*) { return PyBool_FromLong(count_of(self)->elsewhere); }, nullptr,
     nullptr, nullptr},
    {"has_deleter", [](PyObject*, void*) { return PyBool_FromLong(1); }, nullptr, nullptr, nullptr},
    {"throws", [](PyObject* self, void*) { return PyBool_FromLong(count_of(self)->throws); },
     [](PyObject* self, PyObject* value, void*) {
         count_of(self)->throws = value == Py_True;
         return 0;
     },
     "Whether the deleter throws a C++ exception once it has counted.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot counter_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(new_counter)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_counter)},
    {Py_tp_getset, counter_properties},
    {0, nullptr},
};
PyType_Spec counter_spec = {"tenon_exports.Counter", sizeof(counter_object), 0, Py_TPFLAGS_DEFAULT,
                            counter_slots};

/// A deleter that frees `memory` and counts.
class counted_release {
public:
    counted_release(counter* count, void* memory) : count_(count), memory_(memory) { count->hand_out(); }
    void operator()(void*) const {
        std::free(memory_);
        const bool throws = count_->throws;
        count_->take_back();
        if (throws) throw std::runtime_error("a deleter that throws");
    }

private:
    counter* count_;
    void* memory_;
};

// --- tensors by fields --------------------------------------------------------------------------------

/// What a test says of the tensor it wants. The memory is ours unless an address is given: 64-byte aligned,
/// filled with `data` if there is any, else with bytes that count.
struct wanted {
    std::vector<std::int64_t> shape{2, 3};
    std::optional<std::vector<std::int64_t>> strides;
    std::string type = "float32";
    std::optional<tenon::dtype> triple;
    tenon::device where;
    std::uint64_t byte_offset = 0;
    std::size_t room = 0;  // bytes to allocate; 0 works it out for compact ones
    void* address = nullptr;
    void* stream = nullptr;
    bool has_address = false;
    bool read_only = false;
    bool padded = false;
    std::string data;

    explicit wanted(PyObject* keywords) {
        if (keywords == nullptr) return;
        PyObject *key = nullptr, *value = nullptr;
        for (Py_ssize_t i = 0; PyDict_Next(keywords, &i, &key, &value) != 0;) {
            const std::string name = fakes::to_text(key);
            if (name == "shape") {
                shape = fakes::to_ints(value);
            } else if (name == "strides") {
                strides = fakes::to_ints(value);
            } else if (name == "dtype" && PyTuple_Check(value) != 0) {
                const auto t = fakes::to_ints(value);
                triple = tenon::dtype(static_cast<std::uint8_t>(t.at(0)), static_cast<std::uint8_t>(t.at(1)),
                                      static_cast<std::uint16_t>(t.at(2)));
            } else if (name == "dtype") {
                type = fakes::to_text(value);
            } else if (name == "device") {
                const auto d = fakes::to_ints(value);
                where = {static_cast<std::int32_t>(d.at(0)), static_cast<std::int32_t>(d.at(1))};
            } else if (name == "byte_offset") {
                byte_offset = fakes::to_bits(value);
            } else if (name == "room") {
                room = static_cast<std::size_t>(fakes::to_int(value));
            } else if (name == "address") {
                address = fakes::to_address(value);
                has_address = true;
            } else if (name == "stream") {
                stream = fakes::to_address(value);
            } else if (name == "readonly") {
                read_only = value == Py_True;
            } else if (name == "padded") {
                padded = value == Py_True;
            } else if (name == "data") {
                char* bytes = nullptr;
                Py_ssize_t size = 0;
                fakes::require(PyBytes_AsStringAndSize(value, &bytes, &size) == 0);
                data.assign(bytes, static_cast<std::size_t>(size));
            } else {
                PyErr_Format(PyExc_TypeError, "no such field: %s", name.c_str());
                fakes::require(false);
            }
        }
    }

    [[nodiscard]] tensor_info info(void* memory) const {
        const tenon::element_type element = triple ? tenon::element_type(*triple) : tenon::element_type(type);
        tensor_info out = strides ? tensor_info::strided(memory, element, shape, *strides, where)
                                  : tensor_info::contiguous(memory, element, shape, where);
        if (byte_offset != 0) out = out.with_byte_offset(byte_offset);
        if (read_only) out = out.read_only();
        return (padded ? out.padded() : out).on_stream(stream);
    }

    [[nodiscard]] tenon::result<tensor> make(counter* count) const {
        if (has_address) return tensor::own(info(address), counted_release(count, nullptr));
        std::size_t bytes = std::max(room, data.size());
        if (bytes == 0) {
            bytes = 16;
            for (const std::int64_t extent : shape)
                bytes *= static_cast<std::size_t>(extent > 0 ? extent : 1);
            bytes += byte_offset;
        }
        void* const memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
        if (memory == nullptr) throw std::bad_alloc();
        for (std::size_t i = 0; i < bytes; ++i)
            static_cast<unsigned char*>(memory)[i] = static_cast<unsigned char>(i % 251);
        std::memcpy(memory, data.data(), data.size());
        return tensor::own(info(memory), counted_release(count, memory));
    }
};

PyTypeObject* counter_type = nullptr;

/// Makes the tensor that keywords describe, counted by the first argument, and hands it to `leave`.
template <class Leave>
PyObject* export_with(PyObject* args, PyObject* keywords, Leave&& leave) try {
    fakes::require(PyTuple_GET_SIZE(args) > 0);
    PyObject* const owner = PyTuple_GET_ITEM(args, 0);
    if (Py_TYPE(owner) != counter_type) {
        PyErr_SetString(PyExc_TypeError, "the first argument must be a Counter");
        return nullptr;
    }
    auto made = wanted(keywords).make(count_of(owner));
    if (!made) {
        tenon::py::raise(made.error());
        return nullptr;
    }
    return leave(std::move(*made));
} catch (const fakes::bad_argument&) {
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_TypeError, "arguments are missing");
    return nullptr;
} catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
    return nullptr;
}

PyObject* produce(PyObject*, PyObject* args, PyObject* keywords) {
    return export_with(args, keywords, [](tensor&& t) { return tenon::py::to_python(std::move(t)); });
}
PyObject* versioned(PyObject*, PyObject* args, PyObject* keywords) {
    return export_with(args, keywords, [](tensor&& t) { return tenon::py::to_capsule(std::move(t)); });
}
PyObject* legacy(PyObject*, PyObject* args, PyObject* keywords) {
    return export_with(args, keywords, [](tensor&& t) {
        return tenon::py::to_capsule(std::move(t), tenon::py::capsule_kind::legacy);
    });
}
/// to_capsule straight from a description, at the address that is given: described(counter, kind, **fields).
PyObject* described(PyObject*, PyObject* args, PyObject* keywords) try {
    PyObject* owner = nullptr;
    const char* kind = nullptr;
    if (PyArg_ParseTuple(args, "O!s", counter_type, &owner, &kind) == 0) return nullptr;
    const wanted fields(keywords);
    return tenon::py::to_capsule(fields.info(fields.address), counted_release(count_of(owner), nullptr),
                                 std::string_view(kind) == "legacy" ? tenon::py::capsule_kind::legacy
                                                                    : tenon::py::capsule_kind::versioned);
} catch (const fakes::bad_argument&) {
    return nullptr;
}
/// to_python straight from a description: described_like(counter, like, **fields).
PyObject* described_like(PyObject*, PyObject* args, PyObject* keywords) try {
    PyObject *owner = nullptr, *model = nullptr;
    if (PyArg_ParseTuple(args, "O!O", counter_type, &owner, &model) == 0) return nullptr;
    const wanted fields(keywords);
    return tenon::py::to_python(fields.info(fields.address), counted_release(count_of(owner), nullptr),
                                model);
} catch (const fakes::bad_argument&) {
    return nullptr;
}
/// gpu::keep_until_done: keep_until_done(counter, stream, **fields). What it refuses is let go of here.
PyObject* keep_until_done(PyObject*, PyObject* args, PyObject* keywords) try {
    PyObject *owner = nullptr, *stream = nullptr;
    if (PyArg_ParseTuple(args, "O!O", counter_type, &owner, &stream) == 0) return nullptr;
    void* const handle = PyLong_AsVoidPtr(stream);
    if (PyErr_Occurred() != nullptr) return nullptr;
    const wanted fields(keywords);
    auto t = tenon::tensor::own(fields.info(fields.address), counted_release(count_of(owner), nullptr));
    if (!t) return tenon::py::raise(t.error());
    if (auto kept = tenon::gpu::keep_until_done(std::move(*t), handle); !kept)
        return tenon::py::raise(kept.error());
    Py_RETURN_NONE;
} catch (const fakes::bad_argument&) {
    return nullptr;
}
/// empty_like with the shape and type of its model, given back as that: twin(like[, stream]), maybe after
/// work on a stream of the caller's own.
PyObject* twin(PyObject*, PyObject* args) {
    PyObject* model = nullptr;
    unsigned long long stream = 0;
    if (PyArg_ParseTuple(args, "O|K", &model, &stream) == 0) return nullptr;
    auto t = tenon::py::empty_like(model);
    if (t && stream != 0) t->set_stream(reinterpret_cast<void*>(static_cast<std::uintptr_t>(stream)));
    return t ? tenon::py::to_python(std::move(*t), model) : nullptr;
}
/// like(counter, array, **fields)
PyObject* like(PyObject*, PyObject* args, PyObject* keywords) {
    return export_with(args, keywords, [&](tensor&& t) {
        PyObject* const model = PyTuple_GET_SIZE(args) > 1 ? PyTuple_GET_ITEM(args, 1) : nullptr;
        return tenon::py::to_python(std::move(t), model);
    });
}
/// Imports an object and gives it back as its own library has it: there_and_back(obj[, like]).
PyObject* there_and_back(PyObject*, PyObject* args) {
    PyObject *obj = nullptr, *model = nullptr;
    if (PyArg_ParseTuple(args, "O|O", &obj, &model) == 0) return nullptr;
    auto t = tenon::py::from_python(obj);
    return t ? tenon::py::to_python(std::move(*t), model != nullptr ? model : obj) : nullptr;
}
/// empty_like(like, shape, dtype, back=True): filled with 7 in every byte (host memory), given back as like's
/// own type, or as a Tensor.
PyObject* empty_like(PyObject*, PyObject* args) try {
    PyObject *model = nullptr, *shape = nullptr, *back = Py_True;
    const char* type = nullptr;
    if (PyArg_ParseTuple(args, "OOs|O", &model, &shape, &type, &back) == 0) return nullptr;
    auto t = tenon::py::empty_like(model, fakes::to_ints(shape), type);
    if (!t) return nullptr;
    if (t->is_read_only()) {
        PyErr_SetString(PyExc_AssertionError, "not writable");
        return nullptr;
    }
    if (t->device().is_host_accessible() && !t->empty())
        std::memset(t->data(), 7, static_cast<std::size_t>(t->nbytes()));
    return back == Py_True ? tenon::py::to_python(std::move(*t), model) : tenon::py::to_python(std::move(*t));
} catch (const fakes::bad_argument&) {
    return nullptr;
}

/// call_slot(address, first, second): calls an `int(void*, void*)` of an exchange table and returns what it
/// returned, and the exception it left behind or None: ctypes would show one of the two.
PyObject* call_slot(PyObject*, PyObject* args) {
    unsigned long long function = 0, first = 0, second = 0;
    if (PyArg_ParseTuple(args, "KKK", &function, &first, &second) == 0) return nullptr;
    const auto slot = reinterpret_cast<int (*)(void*, void*)>(static_cast<std::uintptr_t>(function));
    const int outcome = slot(reinterpret_cast<void*>(static_cast<std::uintptr_t>(first)),
                             reinterpret_cast<void*>(static_cast<std::uintptr_t>(second)));
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return Py_BuildValue("(iN)", outcome, value != nullptr ? value : ref::borrow(Py_None).release());
}

/// A tensor whose deleter, which captures, calls Python: called_back(callback).
PyObject* called_back(PyObject*, PyObject* callback) {
    Py_INCREF(callback);
    static float memory[4];
    return tenon::py::to_python(tensor::own(tensor_info::contiguous(memory, 4), [callback](void*) {
        const PyGILState_STATE gil = PyGILState_Ensure();
        {
            const ref done = ref::take(PyObject_CallNoArgs(callback));
            if (!done) PyErr_WriteUnraisable(nullptr);
        }
        Py_DECREF(callback);
        PyGILState_Release(gil);
    }));
}
/// A tensor kept by a deleter that captures a tensor that...: chained(depth).
PyObject* chained(PyObject*, PyObject* depth) {
    static float memory[4];
    const tensor_info info = tensor_info::contiguous(memory, 4);
    auto t = tensor::own(info, tenon::keep_alive());
    for (long i = PyLong_AsLong(depth); t && i > 0; --i)
        t = tensor::own(info, [kept = std::make_shared<tensor>(std::move(*t))](void*) {});
    return tenon::py::to_python(std::move(t));
}

// --- classes of a user --------------------------------------------------------------------------------

/// A class whose Python objects are `boxed`, with faults a test can switch on.
struct matrix {
    std::vector<float> values;
    std::int64_t rows = 0, columns = 0;
    tenon::device where{};
    void* stream = nullptr;
    int fault = 0;  // 1: describe throws std::exception, 2: something else, 3: a negative extent, 4: one axis
};
tensor_info describe(const matrix& m) {
    if (m.fault == 1) throw std::runtime_error("this matrix does not want to be described");
    // NOLINTNEXTLINE(bugprone-std-exception-baseclass): that is the point
    if (m.fault == 2) throw 42;
    if (m.fault == 4)
        return tensor_info::contiguous(m.values.data(), {m.rows * m.columns}, m.where).on_stream(m.stream);
    return tensor_info::contiguous(m.values.data(), {m.fault == 3 ? -m.rows : m.rows, m.columns}, m.where)
        .writable()
        .on_stream(m.stream);
}

using matrix_object = tenon::py::boxed<matrix>;
matrix& matrix_of(PyObject* self) { return reinterpret_cast<matrix_object*>(self)->value; }

/// Matrix(rows, columns[, device[, stream]]): where it says its memory, which is the host's, is made.
PyObject* new_matrix(PyTypeObject* type, PyObject* args, PyObject*) {
    Py_ssize_t rows = 0, columns = 0;
    tenon::device where{};
    unsigned long long stream = 0;
    if (PyArg_ParseTuple(args, "nn|(ii)K", &rows, &columns, &where.type, &where.id, &stream) == 0)
        return nullptr;
    PyObject* const self = type->tp_alloc(type, 0);
    if (self == nullptr) return nullptr;
    new (&matrix_of(self)) matrix{std::vector<float>(static_cast<std::size_t>(rows * columns)), rows, columns,
                                  where, reinterpret_cast<void*>(static_cast<std::uintptr_t>(stream))};
    for (std::size_t i = 0; i < matrix_of(self).values.size(); ++i)
        matrix_of(self).values[i] = static_cast<float>(i);
    return self;
}
void dealloc_matrix(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    matrix_of(self).~matrix();
    type->tp_free(self);
    Py_DECREF(type);
}
PyGetSetDef matrix_properties[] = {
    {"fault", [](PyObject* self, void*) { return PyLong_FromLong(matrix_of(self).fault); },
     [](PyObject* self, PyObject* value, void*) {
         matrix_of(self).fault = static_cast<int>(PyLong_AsLong(value));
         return PyErr_Occurred() != nullptr ? -1 : 0;
     },
     nullptr, nullptr},
    {"address", [](PyObject* self, void*) { return PyLong_FromVoidPtr(matrix_of(self).values.data()); },
     nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
/// grow(): the memory moves, as nobody looks at it.
PyObject* grow_matrix(PyObject* self, PyObject*) {
    matrix& m = matrix_of(self);
    ++m.rows;
    std::vector<float> larger(static_cast<std::size_t>(m.rows * m.columns), 2.0F);
    m.values.swap(larger);
    Py_RETURN_NONE;
}
PyMethodDef matrix_methods[] = {
    {"grow", grow_matrix, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot matrix_slots[] = {
    {Py_tp_methods, matrix_methods},
    {Py_tp_new, reinterpret_cast<void*>(new_matrix)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_matrix)},
    {Py_tp_getset, matrix_properties},
    {0, nullptr},
};
PyType_Spec matrix_spec = {"tenon_exports.Matrix", sizeof(matrix_object), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, matrix_slots};

/// Memory inside the object itself: it must be described where it ends up, not where it was made.
struct inline_block {
    std::array<double, 4> values{1, 2, 3, 4};
    counter* count;
    explicit inline_block(counter* c) : count(c) { c->hand_out(); }
    inline_block(inline_block&& o) noexcept : values(o.values), count(std::exchange(o.count, nullptr)) {
        o.values.fill(-1);  // whoever reads the old place reads this
    }
    inline_block(const inline_block&) = delete;
    inline_block& operator=(const inline_block&) = delete;
    inline_block& operator=(inline_block&&) = delete;
    ~inline_block() {
        if (count != nullptr) count->take_back();
    }
};
tensor_info describe(inline_block& b) { return tensor_info::contiguous(b.values.data(), {2, 2}); }

/// inline_object(counter): an object with its memory inside, owned by a tensor.
PyObject* inline_object(PyObject*, PyObject* owner) {
    auto made = tensor::own(inline_block(count_of(owner)));
    if (made) return tenon::py::to_python(std::move(*made));
    tenon::py::raise(made.error());
    return nullptr;
}

PyMethodDef functions[] = {
    {"produce", tenon::py::detail::as_method(produce), METH_VARARGS | METH_KEYWORDS,
     "to_python: produce(counter, **fields)."},
    {"versioned", tenon::py::detail::as_method(versioned), METH_VARARGS | METH_KEYWORDS,
     "to_capsule, versioned."},
    {"legacy", tenon::py::detail::as_method(legacy), METH_VARARGS | METH_KEYWORDS, "to_capsule, legacy."},
    {"described", tenon::py::detail::as_method(described), METH_VARARGS | METH_KEYWORDS,
     "to_capsule of a description: described(counter, kind, address=..., **fields)."},
    {"described_like", tenon::py::detail::as_method(described_like), METH_VARARGS | METH_KEYWORDS,
     "to_python of a description: described_like(counter, like, address=..., **fields)."},
    {"keep_until_done", tenon::py::detail::as_method(keep_until_done), METH_VARARGS | METH_KEYWORDS,
     "gpu::keep_until_done of a description: keep_until_done(counter, stream, address=..., **fields)."},
    {"twin", twin, METH_VARARGS, "empty_like(like), given back: twin(like[, stream])."},
    {"like", tenon::py::detail::as_method(like), METH_VARARGS | METH_KEYWORDS,
     "to_python(t, like): like(counter, array, **fields)."},
    {"there_and_back", there_and_back, METH_VARARGS, "from_python, then to_python(t, like)."},
    {"empty_like", empty_like, METH_VARARGS, "empty_like(like, shape, dtype, back=True)."},
    {"inline_object", inline_object, METH_O, "tensor::own of an object with its memory inside."},
    {"called_back", called_back, METH_O, "A tensor whose deleter calls Python."},
    {"chained", chained, METH_O, "Deleters that keep tensors, this deep."},
    {"call_slot", call_slot, METH_VARARGS, "A function of an exchange table: (outcome, exception)."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "tenon_exports", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit_tenon_exports() {
    ref module = ref::take(PyModule_Create(&definition));
    const ref counted = module ? ref::take(PyType_FromSpec(&counter_spec)) : ref();
    const ref matrix_class = counted ? ref::take(PyType_FromSpec(&matrix_spec)) : ref();
    if (!matrix_class || !tenon::py::make_producer<matrix>(matrix_class.get()) ||
        PyModule_AddObjectRef(module.get(), "Counter", counted.get()) != 0 ||
        PyModule_AddObjectRef(module.get(), "Matrix", matrix_class.get()) != 0)
        return nullptr;
#if defined(Py_GIL_DISABLED)
    PyUnstable_Module_SetGIL(module.get(), Py_MOD_GIL_NOT_USED);
#endif
    counter_type = reinterpret_cast<PyTypeObject*>(ref::borrow(counted.get()).release());
    return module.release();
}
