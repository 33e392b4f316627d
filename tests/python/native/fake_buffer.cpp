// tests/python/native/fake_buffer.cpp: a type whose buffer says whatever a test wants, and counts its
// releases.
//
//   Buffer(data=, len=, itemsize=, format=, ndim=, shape=, strides=, suboffsets=, readonly=,
//   on_release=callable,
//          answer="ok" | "raise" | "silent" | "ok_raised" | "no_owner")
//       .exports .releases .had_error .address
#include <atomic>
#include <string>

#include "fake_fields.hpp"

namespace fakes {

namespace {

struct description {
    data_field data;
    array_field shape, strides, suboffsets;
    std::string format = "f";
    bool has_format = true;
    std::string answer = "ok";
    Py_ssize_t len = 0;
    Py_ssize_t itemsize = 4;
    int ndim = 1;
    int readonly = 0;
    std::atomic<bool> had_error = false;
    std::atomic<long> exports = 0, releases = 0;
};

struct buffer_object {
    PyObject_HEAD PyObject* on_release;
    description* said;
};
buffer_object* as_buffer(PyObject* self) { return reinterpret_cast<buffer_object*>(self); }

Py_ssize_t* as_sizes(array_field& field) {
    static_assert(sizeof(Py_ssize_t) == sizeof(std::int64_t));
    return reinterpret_cast<Py_ssize_t*>(field.get());
}

int get_buffer(PyObject* self, Py_buffer* out, int) {
    description& said = *as_buffer(self)->said;
    out->obj = nullptr;
    if (said.answer == "raise") PyErr_SetString(PyExc_BufferError, "the producer's own words");
    if (said.answer == "raise" || said.answer == "silent") return -1;
    out->buf = said.data.get();
    out->len = said.len;
    out->itemsize = said.itemsize;
    out->readonly = said.readonly;
    out->ndim = said.ndim;
    out->format = said.has_format ? said.format.data() : nullptr;
    out->shape = as_sizes(said.shape);
    out->strides = as_sizes(said.strides);
    out->suboffsets = as_sizes(said.suboffsets);
    if (said.answer == "ok_raised") PyErr_SetString(PyExc_BufferError, "said although it worked");
    if (said.answer == "no_owner") return 0;
    said.exports += 1;
    out->obj = ref::borrow(self).release();
    return 0;
}

void release_buffer(PyObject* self, Py_buffer*) {
    description& said = *as_buffer(self)->said;
    if (enter_release()) said.had_error = true;
    said.releases += 1;
    call_back(as_buffer(self)->on_release);
}

void read_fields(buffer_object* self, PyObject* args, PyObject* keywords) {
    fields given(args, keywords);
    description& said = *self->said;
    const auto with = [&](const char* name, auto&& use) {
        if (const ref value = given.take(name)) use(value.get());
    };
    said.data.read(given.take("data"));
    said.shape = array_field::read(given.take("shape"));
    said.strides = array_field::read(given.take("strides"));
    said.suboffsets = array_field::read(given.take("suboffsets"));
    if (said.shape.owned) said.ndim = static_cast<int>(said.shape.values.size());
    with("ndim", [&](PyObject* v) { said.ndim = static_cast<int>(to_int(v)); });
    with("itemsize", [&](PyObject* v) { said.itemsize = to_int(v); });
    auto bytes = static_cast<std::uint64_t>(said.itemsize);  // may wrap: a lie like any other
    for (const std::int64_t extent : said.shape.values) bytes *= static_cast<std::uint64_t>(extent);
    said.len = static_cast<Py_ssize_t>(bytes);
    with("len", [&](PyObject* v) { said.len = to_int(v); });
    with("readonly", [&](PyObject* v) { said.readonly = PyObject_IsTrue(v); });
    with("answer", [&](PyObject* v) { said.answer = to_text(v); });
    with("on_release", [&](PyObject* v) { self->on_release = ref::borrow(v).release(); });
    with("format", [&](PyObject* v) {
        said.has_format = v != Py_None;
        if (said.has_format) said.format = to_text(v);
    });
    given.expect_none_left();
}

PyObject* new_buffer(PyTypeObject* type, PyObject* args, PyObject* keywords) {
    const ref made = ref::take(type->tp_alloc(type, 0));
    if (!made) return nullptr;
    return guarded(
        [&] {
            as_buffer(made.get())->said = new description;
            read_fields(as_buffer(made.get()), args, keywords);
            return ref::borrow(made.get()).release();
        },
        nullptr);
}

int traverse_buffer(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_buffer(self)->on_release);
    return 0;
}
int clear_buffer(PyObject* self) {
    Py_CLEAR(as_buffer(self)->on_release);
    return 0;
}
void dealloc_buffer(PyObject* self) {
    PyObject_GC_UnTrack(self);
    PyTypeObject* const type = Py_TYPE(self);
    clear_buffer(self);
    delete as_buffer(self)->said;
    type->tp_free(self);
    Py_DECREF(type);
}

template <auto Member>
PyObject* get_count(PyObject* self, void*) {
    return PyLong_FromLong((as_buffer(self)->said->*Member).load());
}
PyObject* get_had_error(PyObject* self, void*) {
    return PyBool_FromLong(as_buffer(self)->said->had_error ? 1 : 0);
}
PyObject* get_address(PyObject* self, void*) { return PyLong_FromVoidPtr(as_buffer(self)->said->data.get()); }
PyObject* get_has_deleter(PyObject*, void*) { Py_RETURN_TRUE; }

PyGetSetDef properties[] = {
    {"exports", get_count<&description::exports>, nullptr, "Buffers handed out.", nullptr},
    {"releases", get_count<&description::releases>, nullptr, "Buffers given back.", nullptr},
    {"had_error", get_had_error, nullptr, "A release saw a pending exception.", nullptr},
    {"address", get_address, nullptr, "Of the data.", nullptr},
    {"has_deleter", get_has_deleter, nullptr, "Buffers are always given back.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(new_buffer)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_buffer)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_buffer)},
    {Py_tp_clear, reinterpret_cast<void*>(clear_buffer)},
    {Py_tp_getset, properties},
    {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
    {0, nullptr},
};
PyType_Spec spec = {"fake_buffer.Buffer", sizeof(buffer_object), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                    slots};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "fake_buffer", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr,
};

}  // namespace

}  // namespace fakes

PyMODINIT_FUNC PyInit_fake_buffer() {
    using namespace fakes;
    ref module = ref::take(PyModule_Create(&definition));
    const ref type = module ? ref::take(PyType_FromSpec(&spec)) : ref();
    if (!type || PyModule_AddObjectRef(module.get(), "Buffer", type.get()) != 0) return nullptr;
    run_without_gil(module.get());
    return module.release();
}
