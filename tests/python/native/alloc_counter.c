/* tests/python/native/alloc_counter.c: counts the allocations of each thread when it is preloaded
 * (LD_PRELOAD). */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <stddef.h>

#define EXPORTED __attribute__((visibility("default")))

#if defined(__GLIBC__)
/* glibc's own entrances: no lookup, so no allocation, on the way to them. */
extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* old, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void* memory);

/* Initial-exec: any other model may allocate on the way to the counter, and so come back here. */
static __thread long allocations __attribute__((tls_model("initial-exec")));

EXPORTED long tenon_test_allocations(void) { return allocations; }

EXPORTED void* malloc(size_t size) {
    ++allocations;
    return __libc_malloc(size);
}
EXPORTED void* calloc(size_t count, size_t size) {
    ++allocations;
    return __libc_calloc(count, size);
}
EXPORTED void* realloc(void* old, size_t size) {
    ++allocations;
    return __libc_realloc(old, size);
}
EXPORTED void* memalign(size_t alignment, size_t size) {
    ++allocations;
    return __libc_memalign(alignment, size);
}
EXPORTED void* aligned_alloc(size_t alignment, size_t size) {
    ++allocations;
    return __libc_memalign(alignment, size);
}
EXPORTED int posix_memalign(void** out, size_t alignment, size_t size) {
    ++allocations;
    *out = __libc_memalign(alignment, size);
    return *out != NULL ? 0 : ENOMEM;
}
EXPORTED void free(void* memory) { __libc_free(memory); }

static int supported = 1;
#else
static int supported = 0;
#endif

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "alloc_counter", NULL, -1, NULL, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_alloc_counter(void) {
    PyObject* module = PyModule_Create(&definition);
    if (module != NULL && PyModule_AddIntConstant(module, "supported", supported) != 0) Py_CLEAR(module);
    return module;
}
