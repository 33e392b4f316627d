/* tests/python/native/foreign_points.c: runs a function of the test's at the points where code of others can
 * run.
 *
 *   arm(function, at)   calls function() at the point of this number from now on, counted from 0; at every
 * one if `at` is -1 disarm()            no more of it; returns how many points there were
 *
 * The modules that are to be watched must be loaded after this one, and this one with RTLD_GLOBAL. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject* function = NULL; /* armed, if there is one */
static long chosen = -1;
static long passed = 0;
static long failures = 0;
static int busy = 0;
static unsigned long watched = 0; /* the thread that armed it */

/* Whatever happens is the test's doing, and goes on without a trace: but for what it changed. */
__attribute__((visibility("default"))) void tenon_tests_foreign_point(void) {
    if (function == NULL || busy || PyThread_get_thread_ident() != watched || !PyGILState_Check()) return;
    const long here = passed++;
    if (chosen >= 0 && here != chosen) return;
    busy = 1;
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    PyErr_Fetch(&type, &value, &trace);
    PyObject* const done = PyObject_CallNoArgs(function);
    if (done == NULL) {
        ++failures;
        PyErr_WriteUnraisable(function);
    }
    Py_XDECREF(done);
    PyErr_Restore(type, value, trace);
    busy = 0;
}

static PyObject* arm(PyObject* self, PyObject* args) {
    PyObject* given = NULL;
    long at = -1;
    (void)self;
    if (!PyArg_ParseTuple(args, "Ol", &given, &at)) return NULL;
    Py_XDECREF(function);
    Py_INCREF(given);
    function = given;
    chosen = at;
    passed = failures = 0;
    watched = PyThread_get_thread_ident();
    Py_RETURN_NONE;
}

static PyObject* disarm(PyObject* self, PyObject* unused) {
    (void)self, (void)unused;
    Py_CLEAR(function);
    if (failures != 0) {
        PyErr_SetString(PyExc_AssertionError, "what was to happen at a point raised an exception: see above");
        return NULL;
    }
    return PyLong_FromLong(passed);
}

static PyMethodDef functions[] = {
    {"arm", arm, METH_VARARGS, NULL},
    {"disarm", disarm, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "foreign_points", NULL, -1, functions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_foreign_points(void) { return PyModule_Create(&definition); }
