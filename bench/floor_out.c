/* bench/floor_out.c: hand-written C extension, only the unavoidable work of handing memory to Python. */

/* The lower bound of the way out, as floor.c is that of the way in: one shape, one type, nothing checked.
   Every contender is METH_O and returns a new object that gives the memory back when it is dropped. */

#include "floor.h"
#include "source.h"

/* -- the managed struct ---------------------------------------------------------------------------- */

typedef struct {
    dl_versioned managed;
    int64_t shape[2], strides[2];
} block;

static void release_memory(dl_versioned* managed) {
    source_release();
    free(managed);
}

static void release_keeper(dl_versioned* managed) {
    PyObject* keeper = managed->context;
    free(managed);
    Py_DECREF(keeper);
}

static dl_versioned* new_managed(void (*deleter)(dl_versioned*), PyObject* keeper) {
    block* b = malloc(sizeof(block));
    if (!b) return (dl_versioned*)PyErr_NoMemory();
    b->shape[0] = b->shape[1] = b->strides[0] = SOURCE_EXTENT;
    b->strides[1] = 1;
    b->managed = (dl_versioned){
        .version = {1, 3},
        .context = keeper,
        .deleter = deleter,
        .tensor = {.data = source_memory,
                   .device = {1, 0},
                   .ndim = 2,
                   .dtype = {2, 32, 1},
                   .shape = b->shape,
                   .strides = b->strides},
    };
    return &b->managed;
}

static void drop_capsule(PyObject* capsule) {
    if (!PyCapsule_IsValid(capsule, "dltensor_versioned")) return;
    dl_versioned* managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    managed->deleter(managed);
}

static PyObject* new_capsule(dl_versioned* managed) {
    return managed ? PyCapsule_New(managed, "dltensor_versioned", drop_capsule) : NULL;
}

/* -- the contenders -------------------------------------------------------------------------------- */

static const exchange_table* torch_table;

static PyObject* to_torch(PyObject* module, PyObject* like) {
    (void)module, (void)like;
    dl_versioned* managed = new_managed(release_memory, NULL);
    void* made;
    return managed && torch_table->to_python(managed, &made) == 0 ? made : NULL;
}

static void* numpy_type;
static PyObject* (*descr_from_type)(int);
static PyObject* (*new_from_descr)(void*, PyObject*, int, const Py_ssize_t*, const Py_ssize_t*, void*, int,
                                   PyObject*);
static int (*set_base_object)(PyObject*, PyObject*);

static void drop_owner(PyObject* capsule) {
    (void)capsule;
    source_release();
}

static PyObject* to_numpy(PyObject* module, PyObject* like) {
    (void)module, (void)like;
    static const Py_ssize_t shape[] = {SOURCE_EXTENT, SOURCE_EXTENT};
    const int float32 = 11, c_contiguous_aligned_writeable = 0x501;

    PyObject* owner = PyCapsule_New(source_memory, NULL, drop_owner);
    if (!owner) return NULL;
    PyObject* array = new_from_descr(numpy_type, descr_from_type(float32), 2, shape, NULL, source_memory,
                                     c_contiguous_aligned_writeable, NULL);
    if (!array) return Py_DECREF(owner), NULL;
    return set_base_object(array, owner) == 0 ? array : (Py_DECREF(array), NULL);
}

static PyObject* to_capsule(PyObject* module, PyObject* unused) {
    (void)module, (void)unused;
    return new_capsule(new_managed(release_memory, NULL));
}

static PyObject* answer_dlpack(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
    (void)args, (void)count, (void)names;
    return new_capsule(new_managed(release_keeper, Py_NewRef(self)));
}

static void drop_producer(PyObject* self) {
    source_release();
    PyObject_Free(self);
}

static PyMethodDef producer_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))answer_dlpack, METH_FASTCALL | METH_KEYWORDS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject producer_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "bench_floor_out.Producer",
    .tp_basicsize = sizeof(PyObject),
    .tp_dealloc = drop_producer,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = producer_methods,
};

static PyObject* to_producer(PyObject* module, PyObject* unused) {
    (void)module, (void)unused;
    return PyObject_New(PyObject, &producer_type);
}

/* -- what is asked of every contender's producer --------------------------------------------------- */

static PyObject* name_dlpack; /* "__dlpack__" */
static PyObject* max_version; /* (1, 3) */
static PyObject* kwnames;     /* ("max_version",) */

static PyObject* ask_dlpack(PyObject* module, PyObject* producer) {
    (void)module;
    PyObject* args[] = {NULL, producer, max_version};
    return PyObject_VectorcallMethod(name_dlpack, args + 1, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, kwnames);
}

/* -- for the checks before the timing -------------------------------------------------------------- */

static PyObject* capsule_address(PyObject* module, PyObject* capsule) {
    (void)module;
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        dl_legacy* legacy = PyCapsule_GetPointer(capsule, "dltensor");
        return PyLong_FromVoidPtr((char*)legacy->tensor.data + legacy->tensor.byte_offset);
    }
    dl_versioned* managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    return managed ? PyLong_FromVoidPtr((char*)managed->tensor.data + managed->tensor.byte_offset) : NULL;
}

static PyObject* address(PyObject* module, PyObject* unused) {
    (void)module, (void)unused;
    return PyLong_FromVoidPtr(source_memory);
}

static PyObject* releases(PyObject* module, PyObject* unused) {
    (void)module, (void)unused;
    return PyLong_FromLongLong(source_releases);
}

static PyObject* setup_torch(PyObject* module, PyObject* type) {
    (void)module;
    torch_table = find_table(type);
    if (!torch_table) return NULL;
    if (!torch_table->to_python) return PyErr_Format(PyExc_RuntimeError, "unusable exchange table");
    Py_RETURN_NONE;
}

static PyObject* setup_numpy(PyObject* module, PyObject* capsule) {
    (void)module;
    void** table = PyCapsule_GetPointer(capsule, NULL);
    if (!table) return NULL;
    /* The places are part of NumPy's ABI; ISO C has no cast from an object to a function. */
    numpy_type = table[2];
    memcpy(&descr_from_type, &table[45], sizeof(void*));
    memcpy(&new_from_descr, &table[94], sizeof(void*));
    memcpy(&set_base_object, &table[282], sizeof(void*));
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"setup_torch", setup_torch, METH_O, "Find the exchange table of this type."},
    {"setup_numpy", setup_numpy, METH_O, "Remember NumPy's C functions, from their capsule."},
    {"to_torch", to_torch, METH_O, "A managed struct and the table's call."},
    {"to_numpy", to_numpy, METH_O, "An array whose base is a capsule."},
    {"to_capsule", to_capsule, METH_O, "A managed struct in a capsule."},
    {"to_producer", to_producer, METH_O, "An object with a __dlpack__."},
    {"ask_dlpack", ask_dlpack, METH_O, "Call __dlpack__(max_version=(1, 3))."},
    {"capsule_address", capsule_address, METH_O, "The address a DLPack capsule tells."},
    {"address", address, METH_NOARGS, "Where the memory lies."},
    {"releases", releases, METH_NOARGS, "How often it was given back."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "bench_floor_out",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_bench_floor_out(void) {
    name_dlpack = PyUnicode_InternFromString("__dlpack__");
    max_version = Py_BuildValue("(ii)", 1, 3);
    PyObject* keyword = PyUnicode_InternFromString("max_version");
    if (!name_dlpack || !max_version || !keyword || PyType_Ready(&producer_type) != 0) return NULL;
    kwnames = PyTuple_Pack(1, keyword);
    Py_DECREF(keyword);
    if (!kwnames) return NULL;
    return PyModule_Create(&definition);
}
