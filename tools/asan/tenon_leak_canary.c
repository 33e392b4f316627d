// tools/asan/tenon_leak_canary.c: a module whose import leaks one block, so that a leak report must exist.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>

// noinline and volatile: the frame must be in the report, and the block must be unreachable.
__attribute__((noinline)) static void tenon_leak_canary_block(void) {
    void* volatile block = malloc(4242);
    block = NULL;
    (void)block;
}

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "tenon_leak_canary"};

PyMODINIT_FUNC PyInit_tenon_leak_canary(void) {
    tenon_leak_canary_block();
    return PyModule_Create(&definition);
}
