/* bench/gpu/floor.c: hand-written C extension, only the unavoidable work of each row of the GPU page. */

/* The lower bound, as ../floor.c and ../floor_out.c are for the host: one type, one shape, nothing checked.
   The samples are one-dimensional, float32, GPU_EXTENT long and on device 0. */

#include "../floor.h"
#include "device.h"
#include "foreign.h"
#include "stream_sink.h"

/* For the table's caption. */
#if defined(__clang__)
#define COMPILER __VERSION__ /* begins with its name */
#elif defined(__GNUC__)
#define COMPILER "GCC " __VERSION__
#else
#define COMPILER "unknown"
#endif

/* -- found once ------------------------------------------------------------------------------------ */

static PyTypeObject* torch_type;
static const exchange_table* torch_table;
static PyTypeObject* cupy_type;
static intptr_t (*cupy_stream)(void);
static PyObject* cupy_empty;    /* cupy.empty */
static PyObject* sample_shape;  /* GPU_EXTENT */
static PyObject* sample_dtype;  /* "f4" */
static PyObject* name_dlpack;   /* "__dlpack__" */
static PyObject* no_order;      /* -1 */
static PyObject* legacy_stream; /* 1 */
static PyObject* kwnames;       /* ("stream",) */

static PyObject* setup_torch(PyObject* module, PyObject* type) {
    (void)module;
    torch_table = find_table(type);
    if (!torch_table) return NULL;
    if (!torch_table->borrowed || !torch_table->current_stream || !torch_table->allocate ||
        !torch_table->to_python)
        return PyErr_Format(PyExc_RuntimeError, "unusable exchange table");
    torch_type = (PyTypeObject*)Py_NewRef(type);
    Py_RETURN_NONE;
}

/* (cupy.ndarray, the capsule of get_current_stream_ptr, cupy.empty) */
static PyObject* setup_cupy(PyObject* module, PyObject* arguments) {
    (void)module;
    PyObject *type, *function, *empty;
    if (!PyArg_ParseTuple(arguments, "OOO", &type, &function, &empty)) return NULL;
    void* found = PyCapsule_GetPointer(function, "intptr_t (void)");
    if (!found) return NULL;
    memcpy(&cupy_stream, &found, sizeof found); /* ISO C has no cast from an object to a function */
    cupy_type = (PyTypeObject*)Py_NewRef(type);
    cupy_empty = Py_NewRef(empty);
    Py_RETURN_NONE;
}

static PyObject* wrong_type(PyObject* object) {
    return PyErr_Format(PyExc_TypeError, "unexpected type %s", Py_TYPE(object)->tp_name);
}

static PyObject* failed(int code) {
    return PyErr_Format(PyExc_RuntimeError, "CUDA: %s", describe_error(code));
}

static void set_error(void* context, const char* kind, const char* message) {
    (void)context, (void)kind;
    PyErr_SetString(PyExc_RuntimeError, message);
}

static float* address_of(const dl_tensor* t) { return (float*)((char*)t->data + t->byte_offset); }

/* -- taking ---------------------------------------------------------------------------------------- */

static PyObject* empty(PyObject* module, PyObject* object) {
    (void)module, (void)object;
    Py_RETURN_NONE;
}

static PyObject* take_torch(PyObject* module, PyObject* object) {
    (void)module;
    if (Py_TYPE(object) != torch_type) return wrong_type(object);
    dl_tensor t;
    void* stream;
    if (torch_table->borrowed(object, &t) != 0 ||
        torch_table->current_stream(t.device.type, t.device.id, &stream) != 0)
        return NULL;
    sink_on(address_of(&t), t.ndim, t.shape[0], t.strides[0], t.dtype.code + t.dtype.bits + t.device.type,
            stream);
    Py_RETURN_NONE;
}

/* CuPy and JAX give a legacy capsule to whoever does not name a version. */
static PyObject* take_capsule(PyObject* object, PyObject* ordered_on, const void* stream) {
    PyObject* args[] = {NULL, object, ordered_on};
    PyObject* capsule =
        PyObject_VectorcallMethod(name_dlpack, args + 1, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, kwnames);
    dl_legacy* managed = capsule ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
    if (!managed) return Py_XDECREF(capsule), NULL;
    PyCapsule_SetName(capsule, "used_dltensor");
    const dl_tensor* t = &managed->tensor;
    sink_on(address_of(t), t->ndim, t->shape[0], t->strides ? t->strides[0] : 1,
            t->dtype.code + t->dtype.bits + t->device.type, stream);
    if (managed->deleter) managed->deleter(managed);
    Py_DECREF(capsule);
    Py_RETURN_NONE;
}

/* No order is asked for: the work goes to the stream that CuPy itself works on. */
static PyObject* take_cupy(PyObject* module, PyObject* object) {
    (void)module;
    if (Py_TYPE(object) != cupy_type) return wrong_type(object);
    return take_capsule(object, no_order, (const void*)cupy_stream());
}

/* JAX does not tell its streams: the default stream is made to wait for the array. */
static PyObject* take_jax(PyObject* module, PyObject* object) {
    (void)module;
    return take_capsule(object, legacy_stream, (const void*)1);
}

/* -- giving ---------------------------------------------------------------------------------------- */

static PyObject* like_torch(PyObject* module, PyObject* object) {
    (void)module;
    if (Py_TYPE(object) != torch_type) return wrong_type(object);
    dl_tensor prototype;
    dl_versioned* managed;
    void* made;
    if (torch_table->borrowed(object, &prototype) != 0 ||
        torch_table->allocate(&prototype, &managed, NULL, set_error) != 0)
        return NULL;
    return torch_table->to_python(managed, &made) == 0 ? made : NULL;
}

static PyObject* like_cupy(PyObject* module, PyObject* object) {
    (void)module;
    if (Py_TYPE(object) != cupy_type) return wrong_type(object);
    PyObject* args[] = {NULL, sample_shape, sample_dtype};
    return PyObject_Vectorcall(cupy_empty, args + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
}

typedef struct {
    dl_versioned managed;
    int64_t shape[1], strides[1];
} block;

static void release_foreign(dl_versioned* managed) {
    foreign_release();
    free(managed);
}

static PyObject* wrap_torch(PyObject* module, PyObject* unused) {
    (void)module, (void)unused;
    block* b = malloc(sizeof(block));
    if (!b) return PyErr_NoMemory();
    b->shape[0] = GPU_EXTENT;
    b->strides[0] = 1;
    b->managed = (dl_versioned){
        .version = {1, 3},
        .deleter = release_foreign,
        .tensor = {.data = foreign_memory(),
                   .device = {2, 0},
                   .ndim = 1,
                   .dtype = {2, 32, 1},
                   .shape = b->shape,
                   .strides = b->strides},
    };
    void* made;
    return torch_table->to_python(&b->managed, &made) == 0 ? made : NULL;
}

/* -- the whole call: saxpy(a, x, y) ---------------------------------------------------------------- */

static PyObject* saxpy(PyObject* module, PyObject* const* args, Py_ssize_t count) {
    (void)module;
    if (count != 3 || !PyFloat_CheckExact(args[0])) return PyErr_Format(PyExc_TypeError, "saxpy(a, x, y)");
    if (Py_TYPE(args[1]) != torch_type || Py_TYPE(args[2]) != torch_type) return wrong_type(args[1]);
    dl_tensor x, y;
    dl_versioned* out;
    void *stream, *made;
    if (torch_table->borrowed(args[1], &x) != 0 || torch_table->borrowed(args[2], &y) != 0 ||
        torch_table->current_stream(x.device.type, x.device.id, &stream) != 0 ||
        torch_table->allocate(&x, &out, NULL, set_error) != 0)
        return NULL;
    const int code = launch_saxpy((float)PyFloat_AS_DOUBLE(args[0]), address_of(&x), address_of(&y),
                                  address_of(&out->tensor), x.shape[0], stream);
    if (code != 0) return out->deleter(out), failed(code);
    return torch_table->to_python(out, &made) == 0 ? made : NULL;
}

/* The launch alone, on memory that was looked up before. */
static PyObject* launch(PyObject* module, PyObject* const* args, Py_ssize_t count) {
    (void)module, (void)args, (void)count;
    float* const memory = foreign_memory();
    const int code = launch_saxpy(2.5F, memory, memory, memory, GPU_EXTENT, NULL);
    if (code != 0) return failed(code);
    Py_RETURN_NONE;
}

/* -- for the checks and the breaks between the timings ---------------------------------------------- */

static PyObject* synchronize(PyObject* module, PyObject* unused) {
    (void)module, (void)unused;
    const int code = wait_for_device();
    if (code != 0) return failed(code);
    Py_RETURN_NONE;
}

static PyObject* last_address(PyObject* module, PyObject* unused) {
    (void)module, (void)unused;
    return PyLong_FromVoidPtr((void*)sink_data);
}

static PyObject* last_stream(PyObject* module, PyObject* unused) {
    (void)module, (void)unused;
    return PyLong_FromVoidPtr((void*)sink_stream);
}

static PyObject* address(PyObject* module, PyObject* unused) {
    (void)module, (void)unused;
    return PyLong_FromVoidPtr(foreign_memory());
}

static PyObject* releases(PyObject* module, PyObject* unused) {
    (void)module, (void)unused;
    return PyLong_FromLongLong(foreign_releases);
}

static PyMethodDef methods[] = {
    {"setup_torch", setup_torch, METH_O, "Find the exchange table of this type."},
    {"setup_cupy", setup_cupy, METH_VARARGS, "Remember the ndarray type and two of CuPy's functions."},
    {"empty", empty, METH_O, "Ignore the argument."},
    {"take_torch", take_torch, METH_O, "The table's borrowed call and its current stream."},
    {"take_cupy", take_cupy, METH_O, "__dlpack__(stream=-1), the deleter, and CuPy's current stream."},
    {"take_jax", take_jax, METH_O, "__dlpack__(stream=1) and the deleter."},
    {"like_torch", like_torch, METH_O, "The table's allocator, and the tensor made an object."},
    {"like_cupy", like_cupy, METH_O, "cupy.empty."},
    {"wrap_torch", wrap_torch, METH_O, "A managed struct and the table's call."},
    {"saxpy", (PyCFunction)(void (*)(void))saxpy, METH_FASTCALL, "Two tensors in, a launch, one tensor out."},
    {"launch", (PyCFunction)(void (*)(void))launch, METH_FASTCALL, "A launch."},
    {"synchronize", synchronize, METH_NOARGS, "Wait for the device."},
    {"last_address", last_address, METH_NOARGS, "The address the last call saw."},
    {"last_stream", last_stream, METH_NOARGS, "The stream the last call saw."},
    {"address", address, METH_NOARGS, "Where the foreign memory lies."},
    {"releases", releases, METH_NOARGS, "How often it was given back."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "bench_gpu_floor",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_bench_gpu_floor(void) {
    name_dlpack = PyUnicode_InternFromString("__dlpack__");
    sample_shape = PyLong_FromLong(GPU_EXTENT);
    sample_dtype = PyUnicode_FromString("f4");
    no_order = PyLong_FromLong(-1);
    legacy_stream = PyLong_FromLong(1);
    PyObject* keyword = PyUnicode_InternFromString("stream");
    if (!name_dlpack || !sample_shape || !sample_dtype || !no_order || !legacy_stream || !keyword)
        return NULL;
    kwnames = PyTuple_Pack(1, keyword);
    Py_DECREF(keyword);
    PyObject* module = kwnames ? PyModule_Create(&definition) : NULL;
    if (module && (PyModule_AddIntConstant(module, "extent", GPU_EXTENT) != 0 ||
                   PyModule_AddIntConstant(module, "block", GPU_BLOCK) != 0 ||
                   PyModule_AddStringConstant(module, "device", describe_device()) != 0 ||
                   PyModule_AddStringConstant(module, "compiler", COMPILER) != 0))
        Py_CLEAR(module);
    return module;
}
