// tests/python/native/fake_arrow.cpp: Arrow's structs, filled with whatever a test says, lies included; each
// release is counted, a second one too.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <tenon/abi/arrow.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/ref.hpp>

#include "fake_fields.hpp"

namespace fakes {

namespace {

using tenon::abi::arrow_array;
using tenon::abi::arrow_array_stream;
using tenon::abi::arrow_device_array;
using tenon::abi::arrow_schema;

// --- what a test says, read while Python is at hand ---------------------------------------------------

struct schema_spec {
    std::optional<std::string> format;
    std::optional<std::string> metadata;
    std::int64_t flags = 0;
    std::vector<schema_spec> children;
    std::vector<schema_spec> dictionary;
    std::optional<std::int64_t> n_children;
    std::optional<std::uint64_t> format_address, children_address, child_address;
    bool released = false;
};

struct buffer_spec {
    std::optional<std::string> bytes;
    std::uint64_t address = 0;
};

struct array_spec {
    std::int64_t length = 0, null_count = 0, offset = 0;
    std::vector<buffer_spec> buffers;
    std::vector<array_spec> children;
    std::vector<array_spec> dictionary;
    std::optional<std::int64_t> n_buffers, n_children;
    std::optional<std::uint64_t> buffers_address, children_address, child_address;
    bool released = false;
};

std::string to_bytes(PyObject* value) {
    if (PyUnicode_Check(value)) return to_text(value);
    Py_buffer source;
    require(PyObject_GetBuffer(value, &source, PyBUF_SIMPLE) == 0);
    std::string out(static_cast<const char*>(source.buf), static_cast<std::size_t>(source.len));
    PyBuffer_Release(&source);
    return out;
}

fields fields_of(PyObject* dict) {
    const ref none = ref::take(PyTuple_New(0));
    require(none && PyDict_Check(dict));
    return {none.get(), dict};
}

/// The items of a sequence, each read by `read`.
template <class T, class Read>
std::vector<T> list_of(PyObject* value, Read&& read) {
    const ref items = ref::take(PySequence_Tuple(value));
    require(static_cast<bool>(items));
    std::vector<T> out;
    out.reserve(static_cast<std::size_t>(PyTuple_GET_SIZE(items.get())));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
        out.push_back(read(PyTuple_GET_ITEM(items.get(), i)));
    return out;
}

template <class Use>
void with(fields& given, const char* name, Use&& use) {
    if (const ref value = given.take(name)) use(value.get());
}

schema_spec take_schema(fields& given) {
    schema_spec out;
    const auto nested = [](PyObject* dict) {
        fields inner = fields_of(dict);
        schema_spec made = take_schema(inner);
        inner.expect_none_left();
        return made;
    };
    with(given, "format", [&](PyObject* v) {
        if (v != Py_None) out.format = to_bytes(v);
    });
    with(given, "metadata", [&](PyObject* v) { out.metadata = to_bytes(v); });
    with(given, "flags", [&](PyObject* v) { out.flags = to_int(v); });
    with(given, "children", [&](PyObject* v) { out.children = list_of<schema_spec>(v, nested); });
    with(given, "dictionary", [&](PyObject* v) { out.dictionary.push_back(nested(v)); });
    with(given, "n_children", [&](PyObject* v) { out.n_children = to_int(v); });
    with(given, "format_address", [&](PyObject* v) { out.format_address = to_bits(v); });
    with(given, "children_address", [&](PyObject* v) { out.children_address = to_bits(v); });
    with(given, "child_address", [&](PyObject* v) { out.child_address = to_bits(v); });
    with(given, "released", [&](PyObject* v) { out.released = PyObject_IsTrue(v) != 0; });
    return out;
}

array_spec take_array(fields& given) {
    array_spec out;
    const auto nested = [](PyObject* dict) {
        fields inner = fields_of(dict);
        array_spec made = take_array(inner);
        inner.expect_none_left();
        return made;
    };
    with(given, "length", [&](PyObject* v) { out.length = to_int(v); });
    with(given, "null_count", [&](PyObject* v) { out.null_count = to_int(v); });
    with(given, "offset", [&](PyObject* v) { out.offset = to_int(v); });
    with(given, "buffers", [&](PyObject* v) {
        out.buffers = list_of<buffer_spec>(v, [](PyObject* item) {
            buffer_spec made;
            if (PyLong_Check(item))
                made.address = to_bits(item);
            else if (item != Py_None)
                made.bytes = to_bytes(item);
            return made;
        });
    });
    with(given, "children", [&](PyObject* v) { out.children = list_of<array_spec>(v, nested); });
    with(given, "dictionary", [&](PyObject* v) { out.dictionary.push_back(nested(v)); });
    with(given, "n_buffers", [&](PyObject* v) { out.n_buffers = to_int(v); });
    with(given, "n_children", [&](PyObject* v) { out.n_children = to_int(v); });
    with(given, "buffers_address", [&](PyObject* v) { out.buffers_address = to_bits(v); });
    with(given, "children_address", [&](PyObject* v) { out.children_address = to_bits(v); });
    with(given, "child_address", [&](PyObject* v) { out.child_address = to_bits(v); });
    with(given, "released", [&](PyObject* v) { out.released = PyObject_IsTrue(v) != 0; });
    return out;
}

// --- the structs --------------------------------------------------------------------------------------

struct node {
    virtual ~node() = default;
};

/// Outlives the Python object and every struct that counts on it. Nodes outlive their
/// release, so that a second one is counted and does not crash; the memory an array shows is freed by the
/// first.
struct book {
    std::mutex lock;
    int references = 1;
    int exports[3] = {};   // schemas, arrays, streams
    int releases[3] = {};  // the same
    bool had_error = false, elsewhere = false, stream_had_gil = false;
    std::uint64_t address = 0;  // of the bytes laid out last
    std::thread::id home = std::this_thread::get_id();
    std::vector<std::unique_ptr<node>> nodes;

    void hand_out(int kind) {
        const std::lock_guard hold(lock);
        ++references;
        ++exports[kind];
    }
    void take_back(int kind) {
        const bool pending = enter_release();
        {
            const std::lock_guard hold(lock);
            had_error |= pending;
            elsewhere = std::this_thread::get_id() != home;
            ++releases[kind];
        }
        drop();
    }
    void drop() {
        bool last = false;
        {
            const std::lock_guard hold(lock);
            last = --references == 0;
        }
        if (last) delete this;
    }
    /// Before something new is handed out: what has all been released need not be remembered for ever.
    void forget() {
        const std::lock_guard hold(lock);
        if (nodes.size() >= 64 && references == 1) nodes.clear();
    }
    template <class Node>
    Node* keep(std::unique_ptr<Node> made) {
        const std::lock_guard hold(lock);
        Node* const there = made.get();
        nodes.push_back(std::move(made));
        return there;
    }
};

template <class T>
T* at_address(std::uint64_t address) {
    return reinterpret_cast<T*>(address);
}

struct schema_node : node {
    book* counts = nullptr;  // of the outermost alone
    std::string format, metadata;
    std::vector<arrow_schema> storage;
    std::vector<arrow_schema*> children;
    arrow_schema dictionary{};
};

void release_schema(arrow_schema* s) {
    auto* const n = static_cast<schema_node*>(s->private_data);
    for (arrow_schema& child : n->storage)
        if (child.release != nullptr) child.release(&child);
    s->release = nullptr;
    if (n->counts != nullptr) n->counts->take_back(0);
}

void build(const schema_spec& said, book* counts, bool outermost, arrow_schema& out) {
    if (outermost) counts->forget();
    auto* const n = counts->keep(std::make_unique<schema_node>());
    out = {};
    n->format = said.format.value_or("");
    if (said.metadata) n->metadata = *said.metadata;
    n->storage.resize(said.children.size());
    for (std::size_t i = 0; i < said.children.size(); ++i) {
        build(said.children[i], counts, false, n->storage[i]);
        n->children.push_back(&n->storage[i]);
    }
    if (said.child_address && !n->children.empty())
        n->children[0] = at_address<arrow_schema>(*said.child_address);
    out.format = said.format_address ? at_address<char>(*said.format_address)
                 : said.format       ? n->format.c_str()
                                     : nullptr;
    out.name = "";
    out.metadata = said.metadata ? n->metadata.data() : nullptr;
    out.flags = said.flags;
    out.n_children = said.n_children.value_or(static_cast<std::int64_t>(n->children.size()));
    out.children = said.children_address ? at_address<arrow_schema*>(*said.children_address)
                   : n->children.empty() ? nullptr
                                         : n->children.data();
    if (!said.dictionary.empty()) {
        build(said.dictionary[0], counts, false, n->dictionary);
        out.dictionary = &n->dictionary;
    }
    out.private_data = n;
    out.release = said.released ? nullptr : &release_schema;
    if (outermost && !said.released) {
        n->counts = counts;
        counts->hand_out(0);
    }
}

struct array_node : node {
    book* counts = nullptr;
    std::vector<void*> memory;
    std::vector<const void*> buffers;
    std::vector<arrow_array> storage;
    std::vector<arrow_array*> children;
    arrow_array dictionary{};

    void free_memory() {
        for (void*& p : memory) std::free(std::exchange(p, nullptr));
    }
    ~array_node() override { free_memory(); }
};

void release_array(arrow_array* a) {
    auto* const n = static_cast<array_node*>(a->private_data);
    for (arrow_array& child : n->storage)
        if (child.release != nullptr) child.release(&child);
    n->free_memory();
    a->release = nullptr;
    if (n->counts != nullptr) n->counts->take_back(1);
}

void build(const array_spec& said, book* counts, bool outermost, arrow_array& out) {
    if (outermost) counts->forget();
    auto* const n = counts->keep(std::make_unique<array_node>());
    out = {};
    for (const buffer_spec& b : said.buffers) {
        if (!b.bytes) {
            n->buffers.push_back(at_address<void>(b.address));
            continue;
        }
        void* const there = std::aligned_alloc(64, (b.bytes->size() / 64 + 1) * 64);
        std::memcpy(there, b.bytes->data(), b.bytes->size());
        n->memory.push_back(there);
        n->buffers.push_back(there);
        counts->address = reinterpret_cast<std::uint64_t>(there);
    }
    n->storage.resize(said.children.size());
    for (std::size_t i = 0; i < said.children.size(); ++i) {
        build(said.children[i], counts, false, n->storage[i]);
        n->children.push_back(&n->storage[i]);
    }
    if (said.child_address && !n->children.empty())
        n->children[0] = at_address<arrow_array>(*said.child_address);
    out.length = said.length;
    out.null_count = said.null_count;
    out.offset = said.offset;
    out.n_buffers = said.n_buffers.value_or(static_cast<std::int64_t>(n->buffers.size()));
    out.n_children = said.n_children.value_or(static_cast<std::int64_t>(n->children.size()));
    out.buffers = said.buffers_address ? at_address<const void*>(*said.buffers_address) : n->buffers.data();
    out.children = said.children_address ? at_address<arrow_array*>(*said.children_address)
                   : n->children.empty() ? nullptr
                                         : n->children.data();
    if (!said.dictionary.empty()) {
        build(said.dictionary[0], counts, false, n->dictionary);
        out.dictionary = &n->dictionary;
    }
    out.private_data = n;
    out.release = said.released ? nullptr : &release_array;
    if (outermost && !said.released) {
        n->counts = counts;
        counts->hand_out(1);
    }
}

struct stream_node : node {
    book* counts = nullptr;
    schema_spec schema;
    std::vector<array_spec> chunks;
    std::size_t next = 0;
    std::string error;
    bool has_error = true;
    std::int64_t schema_error = 0, next_error = 0, fail_at = 0, repeat = 0;
    bool raises = false;  // a Python exception beside the error
};

int fail(stream_node* n, std::int64_t code) {
    if (n->raises) {
        const PyGILState_STATE gil = PyGILState_Ensure();
        PyErr_SetString(PyExc_KeyError, "the stream's own");
        PyGILState_Release(gil);
    }
    return static_cast<int>(code);
}
int get_schema(arrow_array_stream* s, arrow_schema* out) {
    auto* const n = static_cast<stream_node*>(s->private_data);
    if (n->schema_error != 0) {
        std::memset(static_cast<void*>(out), 0x5a, sizeof *out);  // nobody may look at it
        return fail(n, n->schema_error);
    }
    build(n->schema, n->counts, true, *out);
    return 0;
}
int get_next(arrow_array_stream* s, arrow_array* out) {
    auto* const n = static_cast<stream_node*>(s->private_data);
    n->counts->stream_had_gil |= PyGILState_Check() != 0;
    if (n->next_error != 0 && static_cast<std::int64_t>(n->next) == n->fail_at) {
        std::memset(static_cast<void*>(out), 0x5a, sizeof *out);
        return fail(n, n->next_error);
    }
    *out = {};
    if (n->next == n->chunks.size() && n->repeat > 0) {
        --n->repeat;
        n->next = 0;
    }
    if (n->next < n->chunks.size()) build(n->chunks[n->next++], n->counts, true, *out);
    return 0;
}
const char* get_last_error(arrow_array_stream* s) {
    auto* const n = static_cast<stream_node*>(s->private_data);
    return n->has_error ? n->error.c_str() : nullptr;
}
void release_stream(arrow_array_stream* s) {
    auto* const n = static_cast<stream_node*>(s->private_data);
    s->release = nullptr;
    n->counts->take_back(2);
}

// --- capsules -----------------------------------------------------------------------------------------

arrow_schema& inside(arrow_schema& s) { return s; }
arrow_array& inside(arrow_array& a) { return a; }
arrow_array& inside(arrow_device_array& d) { return d.array; }
arrow_array_stream& inside(arrow_array_stream& s) { return s; }

/// The place of a struct, with room to stand askew.
template <class Struct>
struct place {
    std::string name;
    std::size_t shift = 0;
    alignas(64) std::byte bytes[sizeof(Struct) + 64];
};

template <class Struct>
void drop_capsule(PyObject* capsule) {
    auto* const held = static_cast<place<Struct>*>(PyCapsule_GetContext(capsule));
    const tenon::py::error_guard keep;
    Struct s;
    std::memcpy(&s, held->bytes + held->shift, sizeof s);
    if (inside(s).release != nullptr) inside(s).release(&inside(s));
    delete held;
}

/// `name` and `shift` are the capsule's own.
template <class Struct>
PyObject* wrap(fields& given, const char* name, const Struct& s) {
    auto* const held = new place<Struct>;
    held->name = name;
    with(given, "name", [&](PyObject* v) { held->name = to_text(v); });
    with(given, "shift", [&](PyObject* v) { held->shift = static_cast<std::size_t>(to_int(v)); });
    given.expect_none_left();
    std::memcpy(held->bytes + held->shift, &s, sizeof s);
    PyObject* const made =
        PyCapsule_New(held->bytes + held->shift, held->name.c_str(), &drop_capsule<Struct>);
    require(made != nullptr && PyCapsule_SetContext(made, held) == 0);
    return made;
}

// --- the object ---------------------------------------------------------------------------------------

struct fake_object {
    PyObject_HEAD book* counts;
};
book* book_of(PyObject* self) { return reinterpret_cast<fake_object*>(self)->counts; }

PyObject* new_fake(PyTypeObject* type, PyObject*, PyObject*) {
    PyObject* const self = type->tp_alloc(type, 0);
    if (self != nullptr) reinterpret_cast<fake_object*>(self)->counts = new book;
    return self;
}
void dealloc_fake(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    book_of(self)->drop();
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject* make_schema(PyObject* self, PyObject* args, PyObject* keywords) {
    return guarded(
        [&] {
            fields given(args, keywords);
            const schema_spec said = take_schema(given);
            arrow_schema made;
            build(said, book_of(self), true, made);
            return wrap(given, "arrow_schema", made);
        },
        nullptr);
}
PyObject* make_array(PyObject* self, PyObject* args, PyObject* keywords) {
    return guarded(
        [&] {
            fields given(args, keywords);
            const array_spec said = take_array(given);
            arrow_array made;
            build(said, book_of(self), true, made);
            return wrap(given, "arrow_array", made);
        },
        nullptr);
}
PyObject* make_device_array(PyObject* self, PyObject* args, PyObject* keywords) {
    return guarded(
        [&] {
            fields given(args, keywords);
            const array_spec said = take_array(given);
            arrow_device_array made{};
            made.device_type = 1;
            made.device_id = -1;
            with(given, "device_type",
                 [&](PyObject* v) { made.device_type = static_cast<std::int32_t>(to_int(v)); });
            with(given, "device_id", [&](PyObject* v) { made.device_id = to_int(v); });
            with(given, "sync_event", [&](PyObject* v) { made.sync_event = to_address(v); });
            build(said, book_of(self), true, made.array);
            return wrap(given, "arrow_device_array", made);
        },
        nullptr);
}
PyObject* make_stream(PyObject* self, PyObject* args, PyObject* keywords) {
    return guarded(
        [&] {
            fields given(args, keywords);
            auto made = std::make_unique<stream_node>();
            arrow_array_stream s{&get_schema, &get_next, &get_last_error, &release_stream, nullptr};
            with(given, "schema", [&](PyObject* v) {
                fields inner = fields_of(v);
                made->schema = take_schema(inner);
                inner.expect_none_left();
            });
            with(given, "chunks", [&](PyObject* v) {
                made->chunks = list_of<array_spec>(v, [](PyObject* item) {
                    fields inner = fields_of(item);
                    array_spec chunk = take_array(inner);
                    inner.expect_none_left();
                    return chunk;
                });
            });
            with(given, "schema_error", [&](PyObject* v) { made->schema_error = to_int(v); });
            with(given, "next_error", [&](PyObject* v) { made->next_error = to_int(v); });
            with(given, "fail_at", [&](PyObject* v) { made->fail_at = to_int(v); });
            with(given, "repeat", [&](PyObject* v) { made->repeat = to_int(v); });
            with(given, "raises", [&](PyObject* v) { made->raises = PyObject_IsTrue(v) != 0; });
            with(given, "error", [&](PyObject* v) {
                made->has_error = v != Py_None;
                if (made->has_error) made->error = to_bytes(v);
            });
            with(given, "without", [&](PyObject* v) {
                const std::string name = to_text(v);
                if (name == "get_schema") s.get_schema = nullptr;
                if (name == "get_next") s.get_next = nullptr;
                if (name == "get_last_error") s.get_last_error = nullptr;
            });
            with(given, "released", [&](PyObject* v) {
                if (PyObject_IsTrue(v) != 0) s.release = nullptr;
            });
            book* const counts = book_of(self);
            made->counts = counts;
            counts->forget();
            s.private_data = counts->keep(std::move(made));
            PyObject* const capsule = wrap(given, "arrow_array_stream", s);
            if (s.release != nullptr) counts->hand_out(2);
            return capsule;
        },
        nullptr);
}

template <class Read>
constexpr PyGetSetDef property(const char* name, Read) {
    return {name, [](PyObject* self, void*) -> PyObject* { return Read{}(*book_of(self)); }, nullptr, nullptr,
            nullptr};
}
PyObject* counts_of(const int (&counts)[3]) {
    return Py_BuildValue("(iii)", counts[0], counts[1], counts[2]);
}
PyGetSetDef properties[] = {
    property("handed_out", [](book& b) { return counts_of(b.exports); }),
    property("given_back", [](book& b) { return counts_of(b.releases); }),
    property("exports", [](book& b) { return PyLong_FromLong(b.exports[0] + b.exports[1] + b.exports[2]); }),
    property("releases",
             [](book& b) { return PyLong_FromLong(b.releases[0] + b.releases[1] + b.releases[2]); }),
    property("had_error", [](book& b) { return PyBool_FromLong(b.had_error); }),
    property("elsewhere", [](book& b) { return PyBool_FromLong(b.elsewhere); }),
    property("stream_had_gil", [](book& b) { return PyBool_FromLong(b.stream_had_gil); }),
    property("has_deleter", [](book&) { return PyBool_FromLong(1); }),
    property("address", [](book& b) { return PyLong_FromUnsignedLongLong(b.address); }),
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef methods[] = {
    {"schema", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(make_schema)),
     METH_VARARGS | METH_KEYWORDS, "A capsule with a schema of these fields."},
    {"array", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(make_array)),
     METH_VARARGS | METH_KEYWORDS, "A capsule with an array of these fields."},
    {"device_array", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(make_device_array)),
     METH_VARARGS | METH_KEYWORDS, "A capsule with a device array of these fields."},
    {"stream", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(make_stream)),
     METH_VARARGS | METH_KEYWORDS, "A capsule with a stream of these chunks."},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(new_fake)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_fake)},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {0, nullptr},
};
PyType_Spec spec = {"fake_arrow.Arrow", sizeof(fake_object), 0, Py_TPFLAGS_DEFAULT, slots};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "fake_arrow", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr,
};

}  // namespace

}  // namespace fakes

PyMODINIT_FUNC PyInit_fake_arrow() {
    using namespace fakes;
    ref module = ref::take(PyModule_Create(&definition));
    const ref type = module ? ref::take(PyType_FromSpec(&spec)) : ref();
    if (!type || PyModule_AddObjectRef(module.get(), "Arrow", type.get()) != 0) return nullptr;
    run_without_gil(module.get());
    return module.release();
}
