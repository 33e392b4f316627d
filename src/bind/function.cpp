// src/bind/function.cpp: functions of modules written by hand: their signatures, their arguments in order,
// and what they raise.
#include <tenon/bind/function.hpp>
#include "../py/export/all.hpp"
#include "overloads.hpp"

namespace tenon::bind {

[[nodiscard]] inline std::string annotation_of(const parameter_spec& spec) {
    return std::string(annotate(spec.wanted, spec.converting, spec.numbers, spec.names).view());
}

TENON_INLINE std::string annotation_of(const parameter_type& type) {
    std::string out;
    for (unsigned i = 0; i < type.count; ++i)
        out.append(i == 0 ? "" : " | ").append(annotation_of(*type.specs[i]));
    if (type.accepts_none) out += " | None";
    return out;
}

TENON_INLINE loading load_text(PyObject* obj, std::string_view& out) noexcept {
    if (!PyUnicode_Check(obj)) return loading::refused;
    Py_ssize_t length = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(obj, &length);
    if (text == nullptr) return refuse_or_raise();
    out = {text, static_cast<std::size_t>(length)};
    return loading::done;
}

TENON_INLINE py::ref items_of(PyObject* obj) noexcept {
    if (PySequence_Check(obj) == 0 || PyUnicode_Check(obj) || PyBytes_Check(obj)) {
        PyErr_SetString(PyExc_TypeError, "tenon: not a sequence");
        return {};
    }
    if (PyList_CheckExact(obj)) return py::ref::take(py::call::list_items(obj));
    return py::ref::take(foreign_code([&] { return PySequence_Tuple(obj); }));
}

/// The integer that an object is, by the function of CPython's that reads one.
template <class Integer>
[[nodiscard]] loading load_integer(PyObject* obj, Integer& out, bool& ran_code,
                                   Integer (*read)(PyObject*)) noexcept {
    if (PyIndex_Check(obj) == 0 || PyBool_Check(obj)) return loading::refused;
    ran_code = !PyLong_CheckExact(obj);
    const py::ref number = py::ref::take(py::call::index(obj));
    if (!number) return refuse_or_raise();
    out = read(number.get());
    return out == static_cast<Integer>(-1) && PyErr_Occurred() != nullptr ? refuse_or_raise() : loading::done;
}
TENON_INLINE loading load_number(PyObject* obj, long long& out, bool& ran_code) noexcept {
    return load_integer(obj, out, ran_code, &PyLong_AsLongLong);
}
TENON_INLINE loading load_number(PyObject* obj, unsigned long long& out, bool& ran_code) noexcept {
    return load_integer(obj, out, ran_code, &PyLong_AsUnsignedLongLong);
}
TENON_INLINE loading load_number(PyObject* obj, double& out, bool& ran_code) noexcept {
    if (PyFloat_CheckExact(obj)) {
        out = PyFloat_AS_DOUBLE(obj);
        return loading::done;
    }
    if (PyNumber_Check(obj) == 0) return loading::refused;
    ran_code = !PyLong_CheckExact(obj);
    out = foreign_code([&] { return PyFloat_AsDouble(obj); });
    return out == -1.0 && PyErr_Occurred() != nullptr ? refuse_or_raise() : loading::done;
}

}  // namespace tenon::bind

namespace tenon::py::detail {

struct function_record {
    std::string name;
    std::string doc;                 ///< as CPython wants it: the bare signature, then the text
    std::vector<std::string> texts;  ///< names of parameters, and defaults that are text
    bind::overload parameters;
    std::vector<parameter::default_value> defaults;
    std::vector<std::string> annotations;
};

/// A default value as an object. Null with an exception set on failure.
[[nodiscard]] inline ref default_object(const parameter::default_value& value) noexcept {
    if (const auto* truth = std::get_if<bool>(&value)) return ref::take(bind::to_object(*truth));
    if (const auto* number = std::get_if<std::int64_t>(&value)) return ref::take(bind::to_object(*number));
    if (const auto* number = std::get_if<std::uint64_t>(&value)) return ref::take(bind::to_object(*number));
    if (const auto* number = std::get_if<double>(&value)) return ref::take(bind::to_object(*number));
    if (const auto* text = std::get_if<const char*>(&value)) return ref::take(bind::to_object(*text));
    return ref::borrow(Py_None);
}

/// A default value as Python shows it. No Python is needed: tables of methods may be made before it runs.
[[nodiscard]] inline std::string shown(const parameter::default_value& value) {
    if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "True" : "False";
    if (const auto* number = std::get_if<std::int64_t>(&value)) return sentence({*number});
    if (const auto* number = std::get_if<std::uint64_t>(&value)) return sentence({*number});
    if (const auto* text = std::get_if<const char*>(&value)) return bind::quoted(*text);
    const auto* const number = std::get_if<double>(&value);
    if (number == nullptr) return "None";
    char* const text = PyOS_double_to_string(*number, 'r', 0, Py_DTSF_ADD_DOT_0, nullptr);
    std::string out = text != nullptr ? text : "...";
    PyMem_Free(text);
    return out;
}

TENON_INLINE PyMethodDef define_function(const function_record*& known, const char* name,
                                         std::span<const parameter> parameters, const char* doc,
                                         const bind::parameter_type* const* types,
                                         std::span<const std::string> annotations, PyCFunction call) {
    auto* const made = new function_record{name, {}, {}, {}, {}, {annotations.begin(), annotations.end()}};
    known = made;
    std::string bare, full;
    made->texts.reserve(2 * parameters.size());  // they stay where they are
    for (const parameter& p : parameters) {
        const bool has_default = p.value.index() != 0;
        const std::size_t at = made->parameters.size();
        append(bare, {", ", p.name});
        append(full, {full.empty() ? "" : ", ", p.name, ": ", annotations[at]});
        if (has_default) {
            const std::string value = shown(p.value);
            append(bare, {"=", value});
            append(full, {" = ", value});
        }
        const auto kept = [&](const char* text) { return made->texts.emplace_back(text).c_str(); };
        made->parameters.push_back({.name = kept(p.name), .type = types[at], .has_default = has_default});
        const auto* const text = std::get_if<const char*>(&p.value);
        made->defaults.push_back(text != nullptr ? kept(*text) : p.value);
    }
    made->doc = sentence(
        {made->name, "($module", bare, ")\n--\n\n", made->name, "(", full, ") -> ", annotations.back()});
    if (doc != nullptr && *doc != '\0') append(made->doc, {"\n\n", doc});
    return {made->name.c_str(), call, METH_FASTCALL | METH_KEYWORDS, made->doc.c_str()};
}

TENON_INLINE bool place_arguments(const function_record& function, PyObject* const* args,
                                  Py_ssize_t positional, PyObject* names, PyObject** out, ref* made) noexcept
    try {
    const bind::overload& parameters = function.parameters;
    std::string problem = bind::place({args, positional, names}, parameters, out);
    for (std::size_t i = 0; i < parameters.size() && problem.empty(); ++i) {
        if (out[i] != nullptr) continue;
        if (!parameters[i].has_default) {
            problem = sentence({"argument ", bind::quoted(parameters[i].name), " is missing"});
            break;
        }
        made[i] = default_object(function.defaults[i]);
        out[i] = made[i].get();
        if (out[i] == nullptr) return false;
    }
    if (!problem.empty())
        PyErr_SetString(PyExc_TypeError, sentence({function.name, "(): ", problem}).c_str());
    return problem.empty();
} catch (...) {
    raise_caught();
    return false;
}

TENON_INLINE void name_arguments(const function_record& function, const python_error& e,
                                 std::span<const bind::loaded> arguments) noexcept {
    bind::name_argument(e, function.name.c_str(), function.parameters, arguments.data(),
                        static_cast<unsigned>(arguments.size()));
}

TENON_INLINE void raise_refused(const function_record& function, std::size_t index, PyObject* obj) noexcept
    try {
    const bind::parameter& asked = function.parameters[index];
    if (bind::raise_noted(function.name.c_str(), {&asked, 1}, &obj, function.parameters)) return;
    const std::string& annotation = function.annotations[index];
    const bool is_out_of_range =
        (annotation.starts_with("int") || annotation.starts_with("float")) && PyLong_CheckExact(obj);
    const std::string text =
        sentence({function.name, "(): argument '", asked.name, "' does not fit: expected ", annotation,
                  ", got ", bind::type_name(obj), is_out_of_range ? " out of its range" : ""});
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_TypeError, text.c_str());
} catch (...) {
    raise_caught();
}

}  // namespace tenon::py::detail
