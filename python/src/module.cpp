// python/src/module.cpp: the extension module tenon._core: its functions and its start.
#include <optional>

#include <tenon/py.hpp>

namespace tenon::module {

namespace {

/// The keywords of asdlpack().
bool read_options(PyObject* names, PyObject* const* values, py::import_options& out) noexcept {
    namespace argument = py::argument;
    const Py_ssize_t count = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* const name = PyTuple_GET_ITEM(names, i);
        const auto is = [&](const char* known) { return PyUnicode_CompareWithASCIIString(name, known) == 0; };
        const bool read = is("device")     ? argument::read_device("device", values[i], out.to)
                          : is("copy")     ? argument::read_optional_flag("copy", values[i], out.copy)
                          : is("stream")   ? argument::read_stream(values[i], out.stream)
                          : is("writable") ? argument::read_flag("writable", values[i], out.writable)
                          : is("trust_legacy")
                              ? argument::read_flag("trust_legacy", values[i], out.trust_legacy)
                              : argument::unexpected("asdlpack", name);
        if (!read) return false;
    }
    return true;
}

PyObject* asdlpack(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) noexcept {
    if (count != 1) {
        PyErr_Format(PyExc_TypeError, "asdlpack() takes exactly one positional argument (%zd given)", count);
        return nullptr;
    }
    py::import_options options;
    if (!read_options(names, args + 1, options)) return nullptr;
    PyTypeObject* const type = py::producer_type();
    if (type == nullptr) return nullptr;
    // A Tensor that is what was asked for stays what it is: views of views would only make a chain.
    const tensor* const own = Py_IS_TYPE(args[0], type) ? py::held_tensor(args[0]) : nullptr;
    if (own != nullptr && options.copy != true && !options.stream && options.is_met_by(own->device()) &&
        !(options.writable && own->is_read_only())) {
        Py_INCREF(args[0]);
        return args[0];
    }
    std::optional<tensor> t = py::from_python(args[0], options);
    return t ? py::to_python(std::move(*t)) : nullptr;
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
    {"asdlpack", py::detail::as_method(asdlpack), METH_FASTCALL | METH_KEYWORDS, asdlpack_doc},
    {nullptr, nullptr, 0, nullptr},
};

int exec(PyObject* module) noexcept {
    PyTypeObject* const type = py::producer_type();
    PyObject* const malformed_error = py::exception_type(errc::malformed);
    if (type == nullptr || malformed_error == nullptr) return -1;
    if (PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(type)) != 0) return -1;
    if (PyModule_AddObjectRef(module, "MalformedError", malformed_error) != 0) return -1;
    return PyModule_AddStringConstant(module, "__version__", version);
}

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
    0,
    functions,
    slots,
    nullptr,
    nullptr,
    nullptr,
};

}  // namespace

}  // namespace tenon::module

PyMODINIT_FUNC PyInit__core() { return PyModuleDef_Init(&tenon::module::definition); }
