// tests/consume/again_module.cpp: the module of again.cpp.
#include <tenon/py.hpp>

PyObject* again(PyObject*, PyObject* array);

namespace {

PyMethodDef methods[] = {{"again", again, METH_O, "The same memory, as a Tensor."},
                         {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "consume_again", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_consume_again() { return PyModuleDef_Init(&definition); }
