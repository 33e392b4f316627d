/* bench/floor.c: hand-written C extension that does only the unavoidable work of taking one argument. */

/* Nothing here validates, falls back or explains: it is the lower bound that a library is measured
   against, not a way to write one. Every function is METH_O, returns None and ends in sink(). */

#include "floor.h"
#include "sink.h"

/* -- NumPy's public structs, the prefix that 1.x and 2.x share ------------------------------------- */

typedef struct {
    PyObject_HEAD PyTypeObject* scalar_type;
    char kind, letter, byteorder, unused;
    int type_num;
} numpy_descr;

typedef struct {
    PyObject_HEAD char* data;
    int nd;
    Py_ssize_t* dimensions;
    Py_ssize_t* strides;
    PyObject* base;
    numpy_descr* descr;
    int flags;
} numpy_array;

/* -- found once ------------------------------------------------------------------------------------ */

static PyTypeObject* torch_type;
static const exchange_table* torch_table;
static PyTypeObject* numpy_type;
static PyObject* name_dlpack; /* "__dlpack__" */
static PyObject* max_version; /* (1, 3) */
static PyObject* kwnames;     /* ("max_version",) */

static PyObject* setup_torch(PyObject* module, PyObject* type) {
    (void)module;
    torch_table = find_table(type);
    if (!torch_table) return NULL;
    if (!torch_table->borrowed) return PyErr_Format(PyExc_RuntimeError, "unusable exchange table");
    torch_type = (PyTypeObject*)Py_NewRef(type);
    Py_RETURN_NONE;
}

static PyObject* setup_numpy(PyObject* module, PyObject* type) {
    (void)module;
    numpy_type = (PyTypeObject*)Py_NewRef(type);
    Py_RETURN_NONE;
}

static PyObject* wrong_type(PyObject* object) {
    return PyErr_Format(PyExc_TypeError, "unexpected type %s", Py_TYPE(object)->tp_name);
}

static void sink_tensor(const dl_tensor* t) {
    sink((char*)t->data + t->byte_offset, t->ndim, t->ndim ? t->shape[0] : 0, t->ndim ? t->strides[0] : 0,
         t->dtype.code + t->dtype.bits + t->device.type);
}

/* -- the contenders -------------------------------------------------------------------------------- */

static PyObject* empty(PyObject* module, PyObject* object) {
    (void)module, (void)object;
    Py_RETURN_NONE;
}

static PyObject* torch_borrowed(PyObject* module, PyObject* object) {
    (void)module;
    if (Py_TYPE(object) != torch_type) return wrong_type(object);
    dl_tensor t;
    if (torch_table->borrowed(object, &t) != 0) return NULL;
    sink_tensor(&t);
    Py_RETURN_NONE;
}

static PyObject* torch_owned(PyObject* module, PyObject* object) {
    (void)module;
    if (Py_TYPE(object) != torch_type) return wrong_type(object);
    dl_versioned* managed;
    if (torch_table->owned(object, &managed) != 0) return NULL;
    sink_tensor(&managed->tensor);
    managed->deleter(managed);
    Py_RETURN_NONE;
}

static void sink_numpy(const numpy_array* a) {
    sink(a->data, a->nd, a->nd ? a->dimensions[0] : 0, a->nd ? a->strides[0] : 0,
         a->descr->type_num + a->descr->byteorder + a->flags);
}

static PyObject* numpy_struct(PyObject* module, PyObject* object) {
    (void)module;
    if (Py_TYPE(object) != numpy_type) return wrong_type(object);
    sink_numpy((numpy_array*)object);
    Py_RETURN_NONE;
}

static PyObject* numpy_owned(PyObject* module, PyObject* object) {
    (void)module;
    if (Py_TYPE(object) != numpy_type) return wrong_type(object);
    /* Owning is one more reference, kept in memory where the tensor's owner would be. */
    static PyObject* volatile owner;
    owner = Py_NewRef(object);
    sink_numpy((numpy_array*)object);
    Py_DECREF(owner);
    Py_RETURN_NONE;
}

static PyObject* buffer(PyObject* module, PyObject* object) {
    (void)module;
    Py_buffer view;
    if (PyObject_GetBuffer(object, &view, PyBUF_RECORDS_RO) != 0) return NULL;
    sink(view.buf, view.ndim, view.ndim ? view.shape[0] : 0, view.ndim ? view.strides[0] : 0,
         (view.format ? view.format[0] : 'B') + view.readonly);
    PyBuffer_Release(&view);
    Py_RETURN_NONE;
}

static PyObject* consume(PyObject* capsule) {
    if (!capsule) return NULL;
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        dl_versioned* managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        PyCapsule_SetName(capsule, "used_dltensor_versioned");
        sink_tensor(&managed->tensor);
        if (managed->deleter) managed->deleter(managed);
    } else {
        dl_legacy* managed = PyCapsule_GetPointer(capsule, "dltensor");
        if (!managed) return Py_DECREF(capsule), NULL;
        PyCapsule_SetName(capsule, "used_dltensor");
        /* A legacy producer may leave strides NULL: give sink_tensor something to read. */
        int64_t one = 1;
        dl_tensor t = managed->tensor;
        if (!t.strides) t.strides = &one;
        sink_tensor(&t);
        if (managed->deleter) managed->deleter(managed);
    }
    Py_DECREF(capsule);
    Py_RETURN_NONE;
}

static PyObject* dlpack(PyObject* module, PyObject* object) {
    (void)module;
    PyObject* args[] = {NULL, object, max_version};
    return consume(
        PyObject_VectorcallMethod(name_dlpack, args + 1, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, kwnames));
}

static PyObject* dlpack_bare(PyObject* module, PyObject* object) {
    (void)module;
    PyObject* args[] = {NULL, object};
    return consume(
        PyObject_VectorcallMethod(name_dlpack, args + 1, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL));
}

static PyObject* last_address(PyObject* module, PyObject* unused) {
    (void)module, (void)unused;
    return PyLong_FromVoidPtr((void*)sink_data);
}

static PyMethodDef methods[] = {
    {"setup_torch", setup_torch, METH_O, "Find the exchange table of this type."},
    {"setup_numpy", setup_numpy, METH_O, "Remember the ndarray type."},
    {"empty", empty, METH_O, "Ignore the argument."},
    {"torch_borrowed", torch_borrowed, METH_O, "The table's borrowed call."},
    {"torch_owned", torch_owned, METH_O, "The table's owning call and the deleter."},
    {"numpy_struct", numpy_struct, METH_O, "Read NumPy's public C struct."},
    {"numpy_owned", numpy_owned, METH_O, "The same and a reference held meanwhile."},
    {"buffer", buffer, METH_O, "Get and release a buffer."},
    {"dlpack", dlpack, METH_O, "Call __dlpack__(max_version=(1, 3)), consume, delete."},
    {"dlpack_bare", dlpack_bare, METH_O, "Call __dlpack__(), consume, delete."},
    {"last_address", last_address, METH_NOARGS, "The address the last call saw."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "bench_floor",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_bench_floor(void) {
    name_dlpack = PyUnicode_InternFromString("__dlpack__");
    max_version = Py_BuildValue("(ii)", 1, 3);
    PyObject* keyword = PyUnicode_InternFromString("max_version");
    if (!name_dlpack || !max_version || !keyword) return NULL;
    kwnames = PyTuple_Pack(1, keyword);
    Py_DECREF(keyword);
    if (!kwnames) return NULL;
    return PyModule_Create(&definition);
}
