// python/src/module.cpp: the extension module tenon._core: its functions and its start.
#include <tenon/py.hpp>

#include "../../src/py/export/all.hpp"

#include "functions.hpp"

namespace tenon::module {

namespace {

/// What asdlpack() was asked for.
struct wishes {
    py::import_options import;
    std::optional<bool> readonly;
};

bool read_wishes(PyObject* names, PyObject* const* values, wishes& out) noexcept {
    namespace argument = py::argument;
    const bool read = argument::read_keywords(values, names, [&](PyObject* name, PyObject* value) {
        const auto is = [&](const char* known) { return PyUnicode_CompareWithASCIIString(name, known) == 0; };
        if (is("device")) return read_any_device(value, out.import.to);
        if (is("copy")) return argument::read_optional_flag("copy", value, out.import.copy);
        if (is("stream")) return argument::read_stream(value, out.import.stream);
        if (is("readonly")) return argument::read_optional_flag("readonly", value, out.readonly);
        if (is("trust_legacy")) return read_flag("trust_legacy", value, out.import.trust_legacy);
        return argument::unexpected("asdlpack", name);
    });
    out.import.writable = out.readonly == false;
    return read;
}

/// Whether a Tensor is what was asked for already: views of views would only make a chain.
bool is_met_by(const wishes& asked, const tensor& t) noexcept {
    return asked.import.copy != true && !asked.import.stream && asked.import.is_met_by(t.device()) &&
           (!asked.readonly || *asked.readonly == t.is_read_only());
}

PyObject* asdlpack(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) noexcept {
    if (count != 1) {
        PyErr_Format(PyExc_TypeError, "asdlpack() takes exactly one positional argument (%zd given)", count);
        return nullptr;
    }
    wishes asked;
    if (!read_wishes(names, args + 1, asked)) return nullptr;
    PyTypeObject* const type = py::producer_type();
    if (type == nullptr) return nullptr;
    const tensor* const own = Py_IS_TYPE(args[0], type) ? py::held_tensor(args[0]) : nullptr;
    if (own != nullptr && is_met_by(asked, *own)) return py::ref::borrow(args[0]).release();
    std::optional<tensor> t = py::from_python(args[0], asked.import);
    if (!t) return nullptr;
    if (asked.readonly == true) t->set_read_only();
    return py::to_python(std::move(*t));
}

/// The memory of a Tensor as another one, for a consumer that is known: it may leave as a legacy struct,
/// and no more is said of gradients.
PyObject* relaxed(PyObject*, PyObject* obj) noexcept {
    std::optional<tensor> t = py::from_python(obj);
    if (!t) return nullptr;
    t->allow_legacy();
    detail::validator::drop_marks(*t, detail::mark::grad);
    return py::to_python(std::move(*t));
}

/// What `Ask` makes of a Tensor; False for anything else.
template <bool (tensor_ref::*Ask)() const noexcept>
PyObject* ask_tensor(PyObject*, PyObject* obj) noexcept {
    PyTypeObject* const type = py::producer_type();
    if (type == nullptr) return nullptr;
    return PyBool_FromLong(Py_IS_TYPE(obj, type) && (py::held_tensor(obj)->*Ask)() ? 1 : 0);
}

/// `(obj, like)`: the memory of `obj` as an array of the library that `like` comes from. Of gradients the
/// package has said what there is to say.
PyObject* as_like(PyObject*, PyObject* const* args, Py_ssize_t count) noexcept {
    if (!has_arguments("as_like", 2, count)) return nullptr;
    std::optional<tensor> t = py::from_python(args[0]);
    if (!t) return nullptr;
    detail::validator::drop_marks(*t, detail::mark::grad);
    return py::to_python(std::move(*t), args[1]);
}

/// Gives `Tensor` what is written in Python: a dictionary of names and functions or properties. The type is
/// closed to everybody else, and the package calls this when it is imported.
PyObject* complete_tensor(PyObject*, PyObject* names) noexcept {
    PyTypeObject* const type = py::producer_type();
    if (type == nullptr) return nullptr;
    if (!PyDict_CheckExact(names)) return PyErr_Format(PyExc_TypeError, "_core: a dictionary is needed");
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(names, &at, &key, &value) != 0;) {
        const char* const name = PyUnicode_AsUTF8(key);
        if (name == nullptr || !py::detail::add_to_type(type, name, py::ref::borrow(value))) return nullptr;
    }
    PyType_Modified(type);
    Py_RETURN_NONE;
}

constexpr const char asdlpack_doc[] =
    "asdlpack($module, obj, /, *, device=None, copy=None, stream=None, readonly=None, "
    "trust_legacy=False)\n--\n\n"
    "Take any array, tensor, buffer or DLPack capsule as a tenon.Tensor over the same memory.\n\n"
    "device: where the data must be, as anything tenon.device() takes: 'cpu', 'cuda:0', (2, 0), ...\n"
    "copy: True always copies, False never does, None only when the producer must\n"
    "stream: the consumer's stream, numbered as __dlpack__ numbers them\n"
    "readonly: True gives a view that must not be written to, False refuses what must not be\n"
    "trust_legacy: believe that a legacy capsule, which cannot say, is writable\n\n"
    "Raises TypeError for what is not an array, BufferError for what is refused or cannot be expressed,\n"
    "tenon.MalformedError (a ValueError and a BufferError) for a description that contradicts itself; the\n"
    "producer's own exceptions pass unchanged. Where several protocols were tried, the exception has its "
    "first\n"
    "sentence as `reason`, and as `tried` a (name, reason) of each, None for one that was not there.";

PyMethodDef functions[] = {
    {"asdlpack", py::detail::as_method(asdlpack), METH_FASTCALL | METH_KEYWORDS, asdlpack_doc},
    {"from_pointer", py::detail::as_method(from_pointer), METH_FASTCALL, nullptr},
    {"as_like", py::detail::as_method(as_like), METH_FASTCALL, nullptr},
    {"relaxed", relaxed, METH_O, nullptr},
    {"requires_grad", ask_tensor<&tensor_ref::requires_grad>, METH_O, nullptr},
    {"leaves_as_legacy", ask_tensor<&tensor_ref::may_leave_as_legacy>, METH_O, nullptr},
    {"complete_tensor", complete_tensor, METH_O, nullptr},
    {"inspect_object", inspect_object, METH_O, nullptr},
    {"inspect_capsule", inspect_capsule, METH_O, nullptr},
    {"inspect_table", inspect_table, METH_O, nullptr},
    {"inspect_type", inspect_type, METH_O, nullptr},
    {"dtype_of", dtype_of, METH_O, nullptr},
    {"device_of", device_of, METH_O, nullptr},
    {"dtype_name", py::detail::as_method(dtype_name), METH_FASTCALL, nullptr},
    {"meanings", py::detail::as_method(meanings), METH_FASTCALL, nullptr},
    {"device_name", device_name, METH_O, nullptr},
    {"device_pair", device_pair, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

/// What each interpreter's copy of the module has of its own.
struct module_state {
    PyObject* memory_type;
};

[[nodiscard]] module_state* state_of(PyObject* module) noexcept {
    return static_cast<module_state*>(PyModule_GetState(module));
}

int traverse(PyObject* module, visitproc visit, void* arg) noexcept {
    Py_VISIT(state_of(module)->memory_type);
    return 0;
}

int clear(PyObject* module) noexcept {
    Py_CLEAR(state_of(module)->memory_type);
    return 0;
}

int exec(PyObject* module) noexcept {
    state_of(module)->memory_type = make_memory_type(module);
    if (state_of(module)->memory_type == nullptr) return -1;
    py::interpreter* const here = py::interpreter::current();
    if (here == nullptr) return -1;
    here->is_package.store(true);  // before there is any Tensor
    PyObject* const type = py::interpreter::make_once(here->producer_type, make_tensor_type);
    PyObject* const malformed_error = type != nullptr ? py::exception_type(errc::malformed) : nullptr;
    if (malformed_error == nullptr) return -1;
    const py::ref dtypes = py::ref::take(dtype_table());
    const py::ref libraries = py::ref::take(library_table());
    const std::pair<const char*, PyObject*> values[] = {
        {"Tensor", type},
        {"MalformedError", malformed_error},
        {"DTYPES", dtypes.get()},
        {"LIBRARIES", libraries.get()},
    };
    for (const auto& [name, value] : values)
        if (value == nullptr || PyModule_AddObjectRef(module, name, value) != 0) return -1;
    if (PyModule_AddStringConstant(module, "GRADIENT_WARNING", py::gradient_warning) != 0) return -1;
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
    sizeof(module_state),
    functions,
    slots,
    traverse,
    clear,
    nullptr,
};

}  // namespace

PyTypeObject* memory_type_of(PyObject* module) noexcept {
    return reinterpret_cast<PyTypeObject*>(state_of(module)->memory_type);
}

}  // namespace tenon::module

PyMODINIT_FUNC PyInit__core() { return PyModuleDef_Init(&tenon::module::definition); }
