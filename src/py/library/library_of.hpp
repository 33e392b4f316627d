// src/py/library/library_of.hpp: which of the known libraries a type comes from, whether it is truly theirs,
// and what a caller of theirs writes to make an array fit.
#pragma once

#include "table.hpp"

namespace tenon::py {

/// What a module that has been imported has under the name: nothing when either is not there, and an
/// exception may be set then.
[[nodiscard]] inline ref imported_attr(const char* module, const char* name) noexcept {
    const ref found = ref::take(call::imported_module(module));
    return found ? ref::take(call::attr(found.get(), name)) : ref();
}

/// Variables of a program's, as a dictionary; nothing, with an exception, if that fails.
[[nodiscard]] inline ref variables_of(
    std::initializer_list<std::pair<const char*, PyObject*>> given) noexcept {
    ref variables = ref::take(PyDict_New());
    if (!variables || call::set_dict_item(variables.get(), "__builtins__", PyEval_GetBuiltins()) != 0)
        return {};
    for (const auto& [name, value] : given)
        if (call::set_dict_item(variables.get(), name, value) != 0) return {};
    return variables;
}
/// What a program leaves of them; nothing, with an exception, if it fails.
[[nodiscard]] inline ref run_over(const char* program,
                                  std::initializer_list<std::pair<const char*, PyObject*>> given) noexcept {
    ref variables = variables_of(given);
    const ref done = variables ? ref::take(call::run(program, variables.get())) : ref();
    return done ? std::move(variables) : ref();
}

namespace detail {

/// The name of the package a type says it is defined in. Runs no code of the type's own, but for an `__eq__`
/// among its keys. The caller holds the type.
[[nodiscard]] inline std::string defining_package(PyTypeObject* type) {
    const ref declared = ref::take(call::type_attr(type, "__module__"));
    // A heap type made by a class statement has __module__ in its dictionary, a C type in front of tp_name.
    std::string_view module = type->tp_name != nullptr ? type->tp_name : "";
    if (declared && PyUnicode_Check(declared.get())) {
        if (const char* text = PyUnicode_AsUTF8(declared.get())) module = text;
    }
    PyErr_Clear();
    return std::string(module.substr(0, module.find('.')));
}

/// Whether `fn` is true of the type or of a base, asked one by one. Each is held while it is asked: that may
/// give the type other bases.
template <class Fn>
bool is_any_base(PyTypeObject* type, Fn&& fn) {
    for (ref held = ref::borrow(reinterpret_cast<PyObject*>(type)); held;
         held = ref::borrow(reinterpret_cast<PyObject*>(as_type(held)->tp_base)))
        if (fn(as_type(held))) return true;
    return false;
}

/// The row of the library that defines this very type, or null. The caller holds the type.
[[nodiscard]] inline const library_row* library_of_class(PyTypeObject* type) noexcept try {
    return find_library(defining_package(type));
} catch (...) {  // no memory for a long name: none of ours
    return nullptr;
}

}  // namespace detail

/// The row of the library a type comes from, itself or by a base class, or null.
[[nodiscard]] inline const library_row* library_of(PyTypeObject* type) noexcept {
    const library_row* known = nullptr;
    (void)detail::is_any_base(type, [&](PyTypeObject* t) {
        known = detail::library_of_class(t);
        return known != nullptr;
    });
    return known;
}

/// Whether the type, or a base of it, has this name; a look at names alone.
[[nodiscard]] inline bool has_class_named(PyTypeObject* type, std::string_view name) noexcept {
    return !name.empty() && detail::is_any_base(type, [&](PyTypeObject* t) { return name == t->tp_name; });
}

/// Whether `type` is the class that `package` calls `name`, the object itself: what a class says of itself
/// proves nothing (F89). Where its library makes it from a class written in C, it must also derive from one
/// of that name which no `class` statement made: a module put in the library's place has none. Runs code of
/// the library's; an exception is left only if it ends the call (Ctrl-C).
[[nodiscard]] inline bool is_library_class(PyTypeObject* type, const char* package, const char* name,
                                           const char* base = nullptr) noexcept {
    const auto is_base = [&](PyTypeObject* t) {
        const bool made_in_c =
            (t->tp_flags & (Py_TPFLAGS_HEAPTYPE | Py_TPFLAGS_IMMUTABLETYPE)) != Py_TPFLAGS_HEAPTYPE;
        return made_in_c && std::string_view(t->tp_name) == base;
    };
    if (base != nullptr && !detail::is_any_base(type, is_base)) return false;
    const ref found = imported_attr(package, name);
    if (!forget_answer()) return false;
    return found.get() == reinterpret_cast<PyObject*>(type);
}
[[nodiscard]] inline bool is_library_class(PyTypeObject* type, const library_row& row) noexcept {
    return row.array != nullptr && is_library_class(type, row.name.data(), row.array, row.array_base);
}

/// What the library of `obj` calls the way to meet what `unmet` complains of: "x.astype('float32')" for the
/// array called `name`. Empty when nothing short is known.
[[nodiscard]] inline std::string remedy_for(PyObject* obj, std::string_view name, const request& wanted,
                                            const error& unmet) {
    const library_row* const known = library_of(Py_TYPE(obj));
    if (known == nullptr) return {};
    const std::string_view field = unmet.field;
    const bool wants_cuda = wanted.kind == abi::device_code::cuda;
    std::string_view way;
    if (field == "dtype")
        way = known->to_type;
    else if (field == "device")
        way = wants_cuda ? known->to_cuda : wanted.kind <= abi::device_code::cpu ? known->to_host : way;
    else if (field == "strides" && wanted.order == memory_order::f)
        way = known->to_f;
    else if (field == "strides" && wanted.order != memory_order::any)
        way = known->to_c;
    else if (field == "flags" || field == "strides")
        way = known->to_writable;
    std::string out;
    for (std::size_t i = 0; i < way.size(); ++i) {
        if (way[i] != '$')
            out += way[i];
        else if (way[++i] == 'x')
            out += name;
        else if (wanted.type)
            out += tenon::name(*wanted.type);
    }
    return out;
}

namespace detail {

/// The standard's namespace of an array; nothing, maybe with an exception, where it has none.
[[nodiscard]] inline ref namespace_of(PyObject* like) noexcept {
    static constexpr const char* method = "__array_namespace__";
    if (!ref::take(call::type_attr(Py_TYPE(like), method))) return {};
    return ref::take(call::method(like, method, nullptr));
}

/// What has the library's words for element types: the package of a library we know, the standard's namespace
/// of the array, or the package its type is defined in. Nothing when there is none, and an exception only if
/// it ends the call.
[[nodiscard]] inline ref element_types_of(PyObject* like) {
    const ref type = class_of(like);
    const library_row* const row = library_of(as_type(type));
    ref found = row == nullptr ? namespace_of(like) : ref();
    if (!found) {
        if (!forget_answer()) return {};
        const std::string package = row != nullptr ? std::string(row->name) : defining_package(as_type(type));
        found = ref::take(call::import_module(package.c_str()));
        if (!found) (void)forget_answer();
    }
    return found;
}

}  // namespace detail
}  // namespace tenon::py
