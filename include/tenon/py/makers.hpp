// tenon/py/makers.hpp: finding what makes arrays in the library an object comes from, once for each type.
#pragma once

#include <string>
#include <string_view>

#include <tenon/py/call.hpp>
#include <tenon/py/frameworks.hpp>
#include <tenon/py/interpreter.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/py/type_plan.hpp>

namespace tenon::py {

namespace detail {

/// Keeps a function for the life of the interpreter, under a name: borrowed, or null with an exception set.
[[nodiscard]] inline PyObject* keep_function(interpreter& here, const std::string& name,
                                             const ref& function) noexcept {
    PyObject* const all = interpreter::make_once(here.library_functions, [] { return PyDict_New(); });
    // By its address too: another of the same name is another, and this one stays where it is.
    const ref key =
        all != nullptr ? ref::take(PyUnicode_FromFormat("%s %p", name.c_str(), function.get())) : ref();
    return key ? PyDict_SetDefault(all, key.get(), function.get()) : nullptr;
}

/// The object at the end of "package.module.name"; nothing, without an exception, when there is none.
[[nodiscard]] inline ref find_by_path(std::string_view path) {
    const std::size_t dot = path.find('.');
    // The package of an object that exists has been imported; what is not there is not looked for.
    const std::string root(path.substr(0, dot));
    const ref package = ref::take(PyUnicode_FromString(root.c_str()));
    ref found = package ? ref::take(PyImport_GetModule(package.get())) : ref();
    std::size_t from = dot;
    while (found && from != std::string_view::npos) {
        const std::size_t end = path.find('.', from + 1);
        ref next =
            ref::take(call::attr(found.get(), std::string(path.substr(from + 1, end - from - 1)).c_str()));
        if (!next && end != std::string_view::npos && PyErr_ExceptionMatches(PyExc_AttributeError) != 0) {
            // A submodule that nobody has imported yet.
            PyErr_Clear();
            next = ref::take(call::import_module(std::string(path.substr(0, end)).c_str()));
        }
        found = std::move(next);
        from = end;
    }
    return found;
}

/// The function at a path, kept; null without an exception when there is none.
[[nodiscard]] inline PyObject* function_at(interpreter& here, const char* path) {
    if (path == nullptr) return nullptr;
    const ref found = find_by_path(path);
    if (found) return keep_function(here, path, found);
    if (PyErr_Occurred() != nullptr &&
        (PyErr_ExceptionMatches(PyExc_ImportError) != 0 || PyErr_ExceptionMatches(PyExc_AttributeError) != 0))
        PyErr_Clear();
    return nullptr;
}

/// A function of the standard's namespace of an array, `__array_namespace__()`, or of the package its type is
/// defined in. Null without an exception when neither has one.
[[nodiscard]] inline PyObject* function_named(interpreter& here, PyObject* like, const char* name) {
    const ref method = ref::take(PyUnicode_InternFromString("__array_namespace__"));
    const ref found = method ? ref::take(call::type_attr(Py_TYPE(like), method.get())) : ref();
    if (found) {
        const ref space = ref::take(call::method(like, method.get()));
        const ref label = space ? ref::take(call::attr(space.get(), "__name__")) : ref();
        const char* const text =
            label && PyUnicode_Check(label.get()) ? PyUnicode_AsUTF8(label.get()) : nullptr;
        const ref function = text != nullptr ? ref::take(call::attr(space.get(), name)) : ref();
        if (function) return keep_function(here, std::string("namespace ") + text + "." + name, function);
        if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_Exception) == 0) return nullptr;
        PyErr_Clear();
    }
    const std::string package = defining_package(Py_TYPE(like));
    if (package.empty() || package == "builtins") return nullptr;
    return function_at(here, (package + "." + name).c_str());
}

/// Looks for what makes arrays like this one and notes it in `plan`; false with an exception set on failure.
[[nodiscard]] inline bool resolve_maker(PyObject* like, interpreter& here, type_plan& plan) noexcept try {
    PyTypeObject* const type = Py_TYPE(like);
    const framework_habits* const habits = habits_of(type);
    plan.maker_home = &here;
    plan.make_from = plan.make_empty = nullptr;
    plan.maker = maker_kind::none;
    if (plan.table != nullptr && plan.table->managed_tensor_to_py_object_no_sync != nullptr) {
        plan.maker = maker_kind::exchange_table;
    } else if (plan.numpy_struct) {
        plan.maker = maker_kind::numpy;
    } else if (habits != nullptr && habits->from_dlpack != nullptr) {
        plan.make_from = function_at(here, habits->from_dlpack);
        plan.maker = habits->from_capsule ? maker_kind::of_capsule : maker_kind::function;
    } else {
        const ref name = ref::take(PyUnicode_InternFromString("from_dlpack"));
        if (name && ref::take(call::type_attr(type, name.get()))) {
            plan.maker = maker_kind::type_method;
        } else {
            plan.make_from = function_named(here, like, "from_dlpack");
            plan.maker = maker_kind::function;
        }
    }
    if (PyErr_Occurred() != nullptr) return false;
    const bool by_function = plan.maker == maker_kind::function || plan.maker == maker_kind::of_capsule;
    if (by_function && plan.make_from == nullptr) plan.maker = maker_kind::none;
    if (habits != nullptr && habits->empty != nullptr)
        plan.make_empty = function_at(here, habits->empty);
    else if (by_function && !plan.immutable)
        plan.make_empty = function_named(here, like, "empty");
    return PyErr_Occurred() == nullptr;
} catch (...) {
    raise_caught();
    return false;
}

}  // namespace detail
}  // namespace tenon::py
