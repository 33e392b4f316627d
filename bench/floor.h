/* bench/floor.h: DLPack 1.3, only what the floors call, and how a type tells its exchange table. */

#ifndef TENON_BENCH_FLOOR_H
#define TENON_BENCH_FLOOR_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

typedef struct {
    uint32_t major, minor;
} dl_version;
typedef struct {
    int32_t type, id;
} dl_device;
typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} dl_dtype;

typedef struct {
    void* data;
    dl_device device;
    int32_t ndim;
    dl_dtype dtype;
    int64_t* shape;
    int64_t* strides;
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_legacy {
    dl_tensor tensor;
    void* context;
    void (*deleter)(struct dl_legacy*);
} dl_legacy;

typedef struct dl_versioned {
    dl_version version;
    void* context;
    void (*deleter)(struct dl_versioned*);
    uint64_t flags;
    dl_tensor tensor;
} dl_versioned;

typedef struct {
    dl_version version;
    void* previous;
    int (*allocate)(dl_tensor* prototype, dl_versioned** out, void* context,
                    void (*set_error)(void* context, const char* kind, const char* message));
    int (*owned)(void* object, dl_versioned** out);
    int (*to_python)(dl_versioned* tensor, void** out);
    int (*borrowed)(void* object, dl_tensor* out);
    int (*current_stream)(int32_t device_type, int32_t device_id, void** out);
} exchange_table;

/* Borrowed from the type; NULL with an exception set. */
static inline const exchange_table* find_table(PyObject* type) {
    PyObject* capsule = PyObject_GetAttrString(type, "__dlpack_c_exchange_api__");
    if (!capsule) return NULL;
    const exchange_table* table = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    Py_DECREF(capsule);
    if (table && table->version.major != 1)
        return PyErr_SetString(PyExc_RuntimeError, "unusable exchange table"), NULL;
    return table;
}

#endif
