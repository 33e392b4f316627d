// python/src/module.cpp: the extension module tenon._core: its functions, its state, its start.
#include <optional>

#include <tenon/py/import.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/version.hpp>
#include "arguments.hpp"
#include "tensor_type.hpp"

namespace tenon::module {

namespace {

struct module_state {
    PyTypeObject* tensor_type;
};

module_state& state_of(PyObject* module) noexcept {
    return *static_cast<module_state*>(PyModule_GetState(module));
}

PyObject* asdlpack(PyObject* module, PyObject* const* args, Py_ssize_t count, PyObject* names) noexcept {
    static constexpr const char* allowed[] = {"device",   "copy",         "stream",
                                              "writable", "trust_legacy", nullptr};
    if (count != 1) {
        PyErr_Format(PyExc_TypeError, "asdlpack() takes exactly one positional argument (%zd given)", count);
        return nullptr;
    }
    PyTypeObject* const type = state_of(module).tensor_type;
    if (type == nullptr) {
        PyErr_SetString(PyExc_RuntimeError, "tenon: the module is being torn down");
        return nullptr;
    }
    py::import_options options;
    if (names != nullptr) {
        keywords asked;
        if (!read_keywords("asdlpack", allowed, names, args + 1, asked)) return nullptr;
        options = {.writable = asked.writable,
                   .copy = asked.copy,
                   .to = asked.where,
                   .stream = asked.stream,
                   .trust_legacy = asked.trust_legacy};
    }
    // A Tensor that is what was asked for stays what it is: views of views would only make a chain.
    const tensor* const own = Py_IS_TYPE(args[0], type) ? held_tensor(args[0]) : nullptr;
    if (own != nullptr && options.copy != true && !options.stream && options.is_met_by(own->device()) &&
        !(options.writable && own->is_read_only())) {
        Py_INCREF(args[0]);
        return args[0];
    }
    std::optional<tensor> t = py::from_python(args[0], options);
    return t ? wrap_tensor(type, std::move(*t)) : nullptr;
}

constexpr const char asdlpack_doc[] =
    "asdlpack($module, obj, /, *, device=None, copy=None, stream=None, writable=False, "
    "trust_legacy=False)\n--\n\n"
    "Take any array, tensor, buffer or DLPack capsule as a tenon.Tensor over the same memory.\n\n"
    "device: where the data must be, as 'cpu', 'cuda:0' or a (type, id) pair\n"
    "copy: True always copies, False never does, None only when the producer must\n"
    "stream: the consumer's stream, numbered as __dlpack__ numbers them\n"
    "writable: refuse what may not be written to\n"
    "trust_legacy: believe that a legacy capsule, which cannot say, is writable\n\n"
    "Raises TypeError for what is not an array, BufferError for what is refused or cannot be expressed,\n"
    "tenon.MalformedError (a ValueError and a BufferError) for a description that contradicts itself; the\n"
    "producer's own exceptions pass unchanged.";

PyMethodDef functions[] = {
    {"asdlpack", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(asdlpack)),
     METH_FASTCALL | METH_KEYWORDS, asdlpack_doc},
    {nullptr, nullptr, 0, nullptr},
};

int exec(PyObject* module) noexcept {
    PyObject* const type = make_tensor_type(module);
    if (type == nullptr) return -1;
    state_of(module).tensor_type = reinterpret_cast<PyTypeObject*>(type);
    PyObject* const malformed_error = py::exception_type(errc::malformed);
    if (malformed_error == nullptr) return -1;
    if (PyModule_AddObjectRef(module, "Tensor", type) != 0) return -1;
    if (PyModule_AddObjectRef(module, "MalformedError", malformed_error) != 0) return -1;
    return PyModule_AddStringConstant(module, "__version__", version);
}

int traverse(PyObject* module, visitproc visit, void* arg) noexcept {
    Py_VISIT(state_of(module).tensor_type);
    return 0;
}

int clear(PyObject* module) noexcept {
    Py_CLEAR(state_of(module).tensor_type);
    return 0;
}

void free_state(void* module) noexcept { (void)clear(static_cast<PyObject*>(module)); }

PyModuleDef_Slot slots[] = {
    {Py_mod_exec, reinterpret_cast<void*>(exec)},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "tenon._core",
    "The compiled half of tenon.",
    sizeof(module_state),
    functions,
    slots,
    traverse,
    clear,
    free_state,
};

}  // namespace

}  // namespace tenon::module

PyMODINIT_FUNC PyInit__core() { return PyModuleDef_Init(&tenon::module::definition); }
