// tests/python/native/fakes.cpp: DLPack structs and exchange tables that say whatever a test wants, and count
// their releases.
//
//   Struct(versioned=, version=, flags=, data=, shape=, strides=, ndim=, dtype=, device=, byte_offset=,
//          deleter="count" | "null" | "free" | "throw", on_release=callable,
//          exchange="ok" | "raise" | "interrupt" | "silent" | "ok_raised" | "no_out" | "throw",
//          on_export=callable)
//       .capsule(name=...)   a capsule over a new managed struct; "" is a capsule without a name
//       .exports .releases   how many were handed out, and how many deleters have run
//   Table(version=, prev=Table | "self" | address, null=(slot, ...))
//       .capsule(name=...) .address    to be published by a class whose instances have an attribute `struct`
#include <atomic>
#include <deque>
#include <list>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include <tenon/abi/dlpack.hpp>
#include "fake_fields.hpp"

namespace fakes {

namespace {

namespace abi = tenon::abi;

constexpr const char* legacy_name = "dltensor";
constexpr const char* versioned_name = "dltensor_versioned";
constexpr const char* table_name = "dlpack_exchange_api";

/// A capsule keeps the pointer of its name: names live for ever.
const char* static_name(const std::string& text) {
    static std::set<std::string> names;
    return text.empty() ? nullptr : names.insert(text).first->c_str();
}

struct struct_object;

/// One managed struct handed out. It outlives its release, so that a second one is counted and not a crash.
struct export_block {
    struct_object* owner;
    int releases = 0;
    union {
        abi::managed_tensor legacy;
        abi::managed_tensor_versioned versioned;
    };
};

struct description {
    data_field data;
    array_field shape, strides;
    std::string deleter = "count";
    std::string exchange = "ok";
    bool versioned = true;
    std::uint64_t flags = 0;
    abi::dl_version version{1, 3};
    abi::dl_tensor tensor{nullptr, {1, 0}, 0, {2, 32, 1}, nullptr, nullptr, 0};
    std::mutex lock;  // of `blocks`, where there is no GIL
    std::list<export_block> blocks;
    std::atomic<bool> had_error = false;
    std::atomic<long> exports = 0, releases = 0, borrows = 0;
};

struct struct_object {
    PyObject_HEAD PyObject* on_release;
    PyObject* on_export;
    description* said;
};

struct_object* as_struct(PyObject* self) { return reinterpret_cast<struct_object*>(self); }

/// Counts, spoils the description, and lets the owner go.
void release(export_block* block, abi::dl_tensor* tensor) {
    struct_object* const owner = block->owner;
    description& said = *owner->said;
    if (enter_release()) said.had_error = true;
    said.releases += 1;
    block->releases += 1;
    if (block->releases > 1) return;
    std::memset(static_cast<void*>(tensor), 0xdd, sizeof *tensor);
    call_back(owner->on_release);
    Py_DECREF(owner);
}
void delete_legacy(abi::managed_tensor* m) {
    release(static_cast<export_block*>(m->manager_ctx), &m->tensor);
}
void delete_versioned(abi::managed_tensor_versioned* m) {
    release(static_cast<export_block*>(m->manager_ctx), &m->tensor);
}
/// The deleter of a producer whose struct is gone afterwards.
template <class Managed, void (*Release)(Managed*)>
void delete_and_free(Managed* m) {
    Release(m);
    ::operator delete(m);
}
template <class Managed, void (*Release)(Managed*)>
void delete_and_throw(Managed* m) {
    Release(m);
    throw std::runtime_error("a deleter that throws");
}

template <class Managed, void (*Release)(Managed*)>
Managed* fill(struct_object* self, Managed& inside, export_block& block) {
    description& said = *self->said;
    Managed* m = &inside;
    if (said.deleter == "free") m = static_cast<Managed*>(::operator new(sizeof(Managed)));
    *m = Managed{};
    m->tensor = said.tensor;
    m->manager_ctx = &block;
    m->deleter = said.deleter == "null"    ? nullptr
                 : said.deleter == "free"  ? delete_and_free<Managed, Release>
                 : said.deleter == "throw" ? delete_and_throw<Managed, Release>
                                           : Release;
    if constexpr (std::is_same_v<Managed, abi::managed_tensor_versioned>) {
        m->version = said.version;
        m->flags = said.flags;
    }
    return m;
}

/// A new managed struct, legacy or versioned by the struct's own field.
void* export_one(struct_object* self) {
    description& said = *self->said;
    export_block& block = [&]() -> export_block& {
        const std::lock_guard hold(said.lock);
        return said.blocks.emplace_back();
    }();
    block.owner = self;
    said.exports += 1;
    if (said.deleter != "null") Py_INCREF(self);
    if (said.versioned)
        return fill<abi::managed_tensor_versioned, delete_versioned>(self, block.versioned, block);
    return fill<abi::managed_tensor, delete_legacy>(self, block.legacy, block);
}

void run_deleter(void* managed, bool versioned) {
    if (versioned) {
        auto* m = static_cast<abi::managed_tensor_versioned*>(managed);
        if (m->deleter != nullptr) m->deleter(m);
    } else {
        auto* m = static_cast<abi::managed_tensor*>(managed);
        if (m->deleter != nullptr) m->deleter(m);
    }
}

/// Whichever struct a lie put under the name, its own deleter runs: the capsule's context says which.
void destroy_capsule(PyObject* capsule) {
    const tenon::py::error_guard guard;
    const char* const name = PyCapsule_GetName(capsule);
    if (name != nullptr && std::string_view(name).starts_with("used_")) return;
    run_deleter(PyCapsule_GetPointer(capsule, name), PyCapsule_GetContext(capsule) != nullptr);
}

PyObject* make_capsule(PyObject* self, PyObject* args, PyObject* keywords) {
    static const char* names[] = {"name", nullptr};
    const char* name = as_struct(self)->said->versioned ? versioned_name : legacy_name;
    if (PyArg_ParseTupleAndKeywords(args, keywords, "|z", const_cast<char**>(names), &name) == 0)
        return nullptr;
    return guarded(
        [&] {
            const bool versioned = as_struct(self)->said->versioned;
            void* const managed = export_one(as_struct(self));
            PyObject* const capsule =
                PyCapsule_New(managed, static_name(name != nullptr ? name : ""), destroy_capsule);
            if (capsule == nullptr) {
                const tenon::py::error_guard keep;
                run_deleter(managed, versioned);
            }
            require(capsule != nullptr);
            PyCapsule_SetContext(capsule, versioned ? self : nullptr);
            return capsule;
        },
        nullptr);
}

void read_fields(struct_object* self, PyObject* args, PyObject* keywords) {
    fields given(args, keywords);
    description& said = *self->said;
    const auto with = [&](const char* name, auto&& use) {
        if (const ref value = given.take(name)) use(value.get());
    };
    said.data.read(given.take("data"));
    said.shape = array_field::read(given.take("shape"));
    said.strides = array_field::read(given.take("strides"));
    said.tensor.data = said.data.get();
    said.tensor.shape = said.shape.get();
    said.tensor.strides = said.strides.get();
    said.tensor.ndim = static_cast<std::int32_t>(said.shape.values.size());
    with("ndim", [&](PyObject* v) { said.tensor.ndim = static_cast<std::int32_t>(to_int(v)); });
    with("byte_offset", [&](PyObject* v) { said.tensor.byte_offset = to_bits(v); });
    with("flags", [&](PyObject* v) { said.flags = to_bits(v); });
    with("versioned", [&](PyObject* v) { said.versioned = PyObject_IsTrue(v) != 0; });
    with("deleter", [&](PyObject* v) { said.deleter = to_text(v); });
    with("exchange", [&](PyObject* v) { said.exchange = to_text(v); });
    with("on_release", [&](PyObject* v) { self->on_release = ref::borrow(v).release(); });
    with("on_export", [&](PyObject* v) { self->on_export = ref::borrow(v).release(); });
    with("dtype", [&](PyObject* v) {
        const auto t = to_ints(v);
        said.tensor.dtype = {static_cast<std::uint8_t>(t.at(0)), static_cast<std::uint8_t>(t.at(1)),
                             static_cast<std::uint16_t>(t.at(2))};
    });
    with("device", [&](PyObject* v) {
        const auto d = to_ints(v);
        said.tensor.device = {static_cast<std::int32_t>(d.at(0)), static_cast<std::int32_t>(d.at(1))};
    });
    with("version", [&](PyObject* v) {
        const auto n = to_ints(v);
        said.version = {static_cast<std::uint32_t>(n.at(0)), static_cast<std::uint32_t>(n.at(1))};
    });
    given.expect_none_left();
}

PyObject* new_struct(PyTypeObject* type, PyObject* args, PyObject* keywords) {
    const ref made = ref::take(type->tp_alloc(type, 0));
    if (!made) return nullptr;
    return guarded(
        [&] {
            as_struct(made.get())->said = new description;
            read_fields(as_struct(made.get()), args, keywords);
            return ref::borrow(made.get()).release();
        },
        nullptr);
}

int traverse_struct(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_struct(self)->on_release);
    Py_VISIT(as_struct(self)->on_export);
    return 0;
}
int clear_struct(PyObject* self) {
    Py_CLEAR(as_struct(self)->on_release);
    Py_CLEAR(as_struct(self)->on_export);
    return 0;
}
void dealloc_struct(PyObject* self) {
    PyObject_GC_UnTrack(self);
    PyTypeObject* const type = Py_TYPE(self);
    clear_struct(self);
    delete as_struct(self)->said;
    type->tp_free(self);
    Py_DECREF(type);
}

template <auto Member>
PyObject* get_count(PyObject* self, void*) {
    return PyLong_FromLong((as_struct(self)->said->*Member).load());
}
PyObject* get_had_error(PyObject* self, void*) {
    return PyBool_FromLong(as_struct(self)->said->had_error ? 1 : 0);
}
PyObject* get_address(PyObject* self, void*) { return PyLong_FromVoidPtr(as_struct(self)->said->data.get()); }
PyObject* get_has_deleter(PyObject* self, void*) {
    return PyBool_FromLong(as_struct(self)->said->deleter != "null" ? 1 : 0);
}

PyGetSetDef struct_properties[] = {
    {"exports", get_count<&description::exports>, nullptr, "Managed structs handed out.", nullptr},
    {"releases", get_count<&description::releases>, nullptr, "Deleter calls.", nullptr},
    {"borrows", get_count<&description::borrows>, nullptr, "Borrowed tensors handed out.", nullptr},
    {"had_error", get_had_error, nullptr, "A deleter saw a pending exception.", nullptr},
    {"address", get_address, nullptr, "Of the data.", nullptr},
    {"has_deleter", get_has_deleter, nullptr, "False when the deleter is null.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef struct_methods[] = {
    {"capsule", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(make_capsule)),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot struct_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(new_struct)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_struct)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_struct)},
    {Py_tp_clear, reinterpret_cast<void*>(clear_struct)},
    {Py_tp_getset, struct_properties},
    {Py_tp_methods, struct_methods},
    {0, nullptr},
};
PyType_Spec struct_spec = {"fakes.Struct", sizeof(struct_object), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                           struct_slots};

// --- exchange tables ------------------------------------------------------------------------------

PyTypeObject* struct_type = nullptr;  // for the life of the process: tables outlive everything

/// The struct behind an object whose class publishes a table; null with an exception set.
ref struct_of(void* object) {
    ref found = ref::take(PyObject_GetAttrString(static_cast<PyObject*>(object), "struct"));
    if (found && Py_TYPE(found.get()) != struct_type) {
        PyErr_SetString(PyExc_BufferError, "fakes: the object has no Struct");
        return {};
    }
    return found;
}

/// What both functions do first: 1 go on, 0 or -1 return that.
int misbehave(struct_object* self) {
    description& said = *self->said;
    if (self->on_export != nullptr) call_back(self->on_export);
    if (said.exchange == "throw") throw std::runtime_error("a table function that throws");
    if (said.exchange == "raise") PyErr_SetString(PyExc_BufferError, "the producer's own words");
    if (said.exchange == "interrupt") PyErr_SetNone(PyExc_KeyboardInterrupt);
    if (said.exchange == "raise" || said.exchange == "interrupt" || said.exchange == "silent") return -1;
    if (said.exchange == "no_out") return 0;
    return 1;
}

int table_own(void* object, abi::managed_tensor_versioned** out) {
    const ref self = struct_of(object);
    if (!self) return -1;
    struct_object* const fake = as_struct(self.get());
    if (fake->said->exchange == "silent")  // a failed call's `out` is not to be read
        *out = reinterpret_cast<abi::managed_tensor_versioned*>(0x10);
    if (const int answer = misbehave(fake); answer <= 0) return answer;
    *out = static_cast<abi::managed_tensor_versioned*>(export_one(fake));
    if (fake->said->exchange == "ok_raised") PyErr_SetString(PyExc_BufferError, "said although it worked");
    return 0;
}

int table_borrow(void* object, abi::dl_tensor* out) {
    const ref self = struct_of(object);
    if (!self) return -1;
    struct_object* const fake = as_struct(self.get());
    fake->said->borrows += 1;
    if (const int answer = misbehave(fake); answer <= 0) return answer;
    *out = fake->said->tensor;
    if (fake->said->exchange == "ok_raised") PyErr_SetString(PyExc_BufferError, "said although it worked");
    return 0;
}

int table_to_python(abi::managed_tensor_versioned*, void**) {
    PyErr_SetString(PyExc_BufferError, "fakes: never");
    return -1;
}
int table_allocate(abi::dl_tensor*, abi::managed_tensor_versioned**, void* context,
                   void (*set_error)(void*, const char*, const char*)) {
    if (set_error != nullptr) set_error(context, "MemoryError", "fakes: never");
    return -1;
}
// What every table says it works on; -1: it fails, -2: it throws, -3: it fails with an exception of Python's.
std::intptr_t work_stream = 0;
long stream_questions = 0;
int table_stream(std::int32_t, std::int32_t, void** out) {
    ++stream_questions;
    if (work_stream == -2) throw std::runtime_error("a table function that throws");
    if (work_stream == -3) PyErr_SetString(PyExc_RuntimeError, "a table function that fails");
    *out = reinterpret_cast<void*>(work_stream);
    return work_stream < 0 ? -1 : 0;
}
PyObject* work_on(PyObject*, PyObject* number) {
    work_stream = static_cast<std::intptr_t>(PyLong_AsSsize_t(number));
    if (PyErr_Occurred() != nullptr) return nullptr;
    Py_RETURN_NONE;
}
PyObject* asked_for_stream(PyObject*, PyObject*) { return PyLong_FromLong(stream_questions); }

struct table_object {
    PyObject_HEAD abi::exchange_api* table;
};
table_object* as_table(PyObject* self) { return reinterpret_cast<table_object*>(self); }

PyObject* new_table(PyTypeObject* type, PyObject* args, PyObject* keywords) {
    static std::deque<abi::exchange_api> tables;  // process lifetime, as the protocol says
    const ref made = ref::take(type->tp_alloc(type, 0));
    if (!made) return nullptr;
    return guarded(
        [&] {
            fields given(args, keywords);
            abi::exchange_api& table = tables.emplace_back(abi::exchange_api{
                {{1, 3}, nullptr}, table_allocate, table_own, table_to_python, table_borrow, table_stream});
            as_table(made.get())->table = &table;
            if (const ref version = given.take("version")) {
                const auto n = to_ints(version.get());
                table.header.version = {static_cast<std::uint32_t>(n.at(0)),
                                        static_cast<std::uint32_t>(n.at(1))};
            }
            if (const ref prev = given.take("prev")) {
                if (PyUnicode_Check(prev.get()))
                    table.header.prev_api = &table.header;
                else if (PyLong_Check(prev.get()))
                    table.header.prev_api = static_cast<abi::exchange_api_header*>(to_address(prev.get()));
                else if (Py_TYPE(prev.get()) == type)
                    table.header.prev_api = &as_table(prev.get())->table->header;
            }
            if (const ref null = given.take("null")) {
                const ref names = ref::take(PySequence_Tuple(null.get()));
                require(static_cast<bool>(names));
                for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.get()); ++i) {
                    const std::string slot = to_text(PyTuple_GET_ITEM(names.get(), i));
                    if (slot == "allocate") table.managed_tensor_allocator = nullptr;
                    if (slot == "own") table.managed_tensor_from_py_object_no_sync = nullptr;
                    if (slot == "to_python") table.managed_tensor_to_py_object_no_sync = nullptr;
                    if (slot == "borrow") table.dltensor_from_py_object_no_sync = nullptr;
                    if (slot == "stream") table.current_work_stream = nullptr;
                }
            }
            given.expect_none_left();
            return ref::borrow(made.get()).release();
        },
        nullptr);
}

PyObject* table_capsule(PyObject* self, PyObject* args) {
    const char* name = table_name;
    if (PyArg_ParseTuple(args, "|s", &name) == 0) return nullptr;
    return PyCapsule_New(as_table(self)->table, static_name(name), nullptr);
}
PyObject* table_address(PyObject* self, void*) { return PyLong_FromVoidPtr(as_table(self)->table); }

void dealloc_table(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyGetSetDef table_properties[] = {{"address", table_address, nullptr, nullptr, nullptr},
                                  {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef table_methods[] = {{"capsule", table_capsule, METH_VARARGS, nullptr},
                               {nullptr, nullptr, 0, nullptr}};
PyType_Slot table_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(new_table)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_table)},
    {Py_tp_getset, table_properties},
    {Py_tp_methods, table_methods},
    {0, nullptr},
};
PyType_Spec table_spec = {"fakes.Table", sizeof(table_object), 0, Py_TPFLAGS_DEFAULT, table_slots};

// --- functions that break the rules of the C API --------------------------------------------------

PyObject* returns_null(PyObject*, PyObject*, PyObject*) { return nullptr; }
PyObject* returns_with_error(PyObject*, PyObject*, PyObject*) {
    PyErr_SetString(PyExc_BufferError, "said although it worked");
    Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"returns_null", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(returns_null)),
     METH_VARARGS | METH_KEYWORDS, "Fails without an exception."},
    {"returns_with_error", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(returns_with_error)),
     METH_VARARGS | METH_KEYWORDS, "Succeeds with an exception."},
    {"work_on", work_on, METH_O, "The stream that tables say they work on from now on."},
    {"asked_for_stream", asked_for_stream, METH_NOARGS, "How often tables have been asked for it."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "fakes", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr,
};

}  // namespace

}  // namespace fakes

PyMODINIT_FUNC PyInit_fakes() {
    using namespace fakes;
    ref module = ref::take(PyModule_Create(&definition));
    if (!module) return nullptr;
    const ref a = ref::take(PyType_FromSpec(&struct_spec));
    const ref b = ref::take(PyType_FromSpec(&table_spec));
    if (!a || !b || PyModule_AddObjectRef(module.get(), "Struct", a.get()) != 0 ||
        PyModule_AddObjectRef(module.get(), "Table", b.get()) != 0)
        return nullptr;
    run_without_gil(module.get());
    struct_type = reinterpret_cast<PyTypeObject*>(ref::borrow(a.get()).release());
    return module.release();
}
