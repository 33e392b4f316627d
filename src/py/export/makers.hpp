// src/py/export/makers.hpp: finding what makes arrays in the library an object comes from, once for each
// type.
#pragma once

#include "../import/all.hpp"

namespace tenon::py::detail {

/// A function of a library, or nothing.
struct library_function {
    ref function;
    bool kept = true;  ///< by the interpreter's record, for good, or none at all: plans may point to it
};

/// Keeps a function for the life of the interpreter, under a name, unless there is another of that name (a
/// library that makes its functions anew each time is asked each time) or there are more than any process has
/// libraries. An exception is set on failure.
[[nodiscard]] inline library_function keep_function(interpreter& here, const std::string& name,
                                                    ref function) noexcept {
    PyObject* const all = interpreter::make_once(here.library_functions, [] { return PyDict_New(); });
    const ref key = all != nullptr ? ref::take(PyUnicode_FromString(name.c_str())) : ref();
    if (!key) return {};
    static constexpr Py_ssize_t most_kept = 128;
    PyObject* there = nullptr;
    if (PyDict_Size(all) < most_kept)
        there = call::dict_item_or_set(all, key.get(), function.get());
    else if (call::dict_item(all, key.get(), &there) == 0)
        return {std::move(function), false};
    const ref kept = ref::take(there);
    // Plans point to what is in it: nobody is to find it by the collector, and empty it.
    if (PyObject_GC_IsTracked(all) != 0) PyObject_GC_UnTrack(all);
    if (!kept) return {};
    const bool same = kept.get() == function.get();
    return {std::move(function), same};
}

/// The object at the end of "package.module.name"; nothing, without an exception, when there is none.
[[nodiscard]] inline ref find_by_path(std::string_view path) {
    const std::size_t dot = path.find('.');
    // The package of an object that exists has been imported; what is not there is not looked for.
    const std::string root(path.substr(0, dot));
    ref found = ref::take(call::imported_module(root.c_str()));
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

/// The function at a path; none, without an exception, when there is none.
[[nodiscard]] inline library_function function_at(interpreter& here, const char* path) {
    ref found = find_by_path(path);
    if (found) return keep_function(here, path, std::move(found));
    if (PyErr_Occurred() != nullptr &&
        (PyErr_ExceptionMatches(PyExc_ImportError) != 0 || PyErr_ExceptionMatches(PyExc_AttributeError) != 0))
        PyErr_Clear();
    return {};
}

/// A function of the standard's namespace of an array, `__array_namespace__()`, or of the package its type is
/// defined in; none, without an exception, when neither has one.
[[nodiscard]] inline library_function function_named(interpreter& here, PyObject* like, const char* name) {
    const ref space = namespace_of(like);
    const ref label = space ? ref::take(call::attr(space.get(), "__name__")) : ref();
    const char* const text = label && PyUnicode_Check(label.get()) ? PyUnicode_AsUTF8(label.get()) : nullptr;
    ref function = text != nullptr ? ref::take(call::attr(space.get(), name)) : ref();
    if (function)
        return keep_function(here, std::string("namespace ") + text + "." + name, std::move(function));
    if (!forget_answer()) return {};
    const ref type = class_of(like);
    const std::string package = defining_package(as_type(type));
    if (package.empty() || package == "builtins") return {};
    return function_at(here, (package + "." + name).c_str());
}

/// What makes arrays like some object. A copy of what the plan of its type says, for what follows runs
/// foreign code.
struct maker {
    maker_kind kind;
    bool immutable;         ///< the library's arrays must not be written to
    bool genuine;           ///< its table is the one we know: what that allocates is let go of without Python
    bool takes_type_names;  ///< its functions take the names of element types as they are
    const library_row* library;  ///< null for one that is not known
    const abi::exchange_api* table;
    PyTypeObject* type;
    ref alive;            ///< the type: `like` may get another
    PyObject* make_from;  ///< borrowed of the plan, like the next; or kept below
    PyObject* make_empty;
    library_function from, empty;  ///< as found just now; nothing when the plan knew

    explicit maker(const type_plan& plan) noexcept
        : kind(plan.maker.kind),
          immutable(plan.immutable),
          genuine(plan.genuine_table),
          takes_type_names(plan.stream_alone),
          library(plan.library),
          table(plan.table),
          type(plan.type),
          alive(ref::borrow(reinterpret_cast<PyObject*>(plan.type))),
          make_from(plan.maker.from),
          make_empty(plan.maker.empty) {}

    /// Looks for it; false with an exception set on failure.
    [[nodiscard]] bool resolve(PyObject* like, interpreter& here, bool numpy_struct) noexcept try {
        kind = maker_kind::none;
        if (table != nullptr && table->managed_tensor_to_py_object_no_sync != nullptr) {
            kind = maker_kind::exchange_table;
        } else if (numpy_struct) {
            kind = maker_kind::numpy;
        } else if (library != nullptr && library->from_dlpack != nullptr) {
            from = function_at(here, library->from_dlpack);
            kind = library->from_capsule ? maker_kind::of_capsule : maker_kind::function;
        } else if (has_method("from_dlpack")) {
            kind = maker_kind::type_method;
        } else {
            from = function_named(here, like, "from_dlpack");
            kind = maker_kind::function;
        }
        if (PyErr_Occurred() != nullptr) return false;
        const bool by_function = kind == maker_kind::function || kind == maker_kind::of_capsule;
        if (by_function && !from.function) kind = maker_kind::none;
        if (library != nullptr && library->empty != nullptr)
            empty = function_at(here, library->empty);
        else if (by_function && !immutable)
            empty = function_named(here, like, "empty");
        make_from = from.function.get();
        make_empty = empty.function.get();
        return PyErr_Occurred() == nullptr;
    } catch (...) {
        raise_caught();
        return false;
    }

    /// Whether the library can compute with elements at an address: it would not notice otherwise.
    [[nodiscard]] bool can_use(const void* address, dtype element, device where) const noexcept {
        return library == nullptr || library->can_compute_at(address, element, where);
    }

    /// Whether the type itself has a function of this name.
    [[nodiscard]] bool has_method(const char* name) const noexcept {
        if (!ref::take(call::type_attr(type, name))) return false;
        const ref found = ref::take(call::attr(reinterpret_cast<PyObject*>(type), name));
        return found && PyCallable_Check(found.get()) != 0;
    }
};

TENON_COLD [[nodiscard]] inline std::optional<maker> find_maker(PyObject* like, interpreter& here) noexcept {
    const nesting_level level;
    type_plan plan;
    ref type;
    if (!level || !look_at_class(like, here, type, plan)) return std::nullopt;
    std::optional<maker> made(std::in_place, plan);
    if (!made->resolve(like, here, plan.numpy_struct)) return std::nullopt;
    if (made->from.kept && made->empty.kept)
        plan.maker = {made->kind, &here, made->make_from, made->make_empty};
    remember_plan(plan);  // dated before it was made: a change in between leaves it out of date
    return made;
}

/// What makes arrays like an object, as its type's plan remembers it; nullopt with an exception set on
/// failure.
[[nodiscard]] inline std::optional<maker> maker_of(PyObject* like, interpreter& here) noexcept {
    const type_plan* const known = find_plan_of(like);
    if (known != nullptr && known->maker.kind != maker_kind::unresolved && known->maker.home == &here)
        [[likely]]
        return std::optional<maker>(std::in_place, *known);
    return find_maker(like, here);
}

}  // namespace tenon::py::detail
