// src/py/export/makers.hpp: finding what makes arrays in the library an object comes from, once for each
// type.
#pragma once

#include "../import/all.hpp"

namespace tenon::py::detail {

/// A function of a library, or nothing; and the name it is kept under.
struct library_function {
    ref function;
    std::string name;
};

/// Keeps a function for the life of the interpreter: plans may point to it. False when another is kept under
/// its name (a library that makes its functions anew each time is asked each time), when there are more than
/// any process has libraries, or with an exception set. No function is there for good.
[[nodiscard]] inline bool keep_function(interpreter& here, const library_function& found) noexcept {
    static constexpr Py_ssize_t most_kept = 128;
    PyObject* const function = found.function.get();
    if (function == nullptr) return true;
    PyObject* const all = interpreter::make_once(here.library_functions, [] { return PyDict_New(); });
    const ref key = all != nullptr ? ref::take(PyUnicode_FromString(found.name.c_str())) : ref();
    if (!key) return false;
    PyObject* there = nullptr;
    if (PyDict_Size(all) < most_kept)
        there = call::dict_item_or_set(all, key.get(), function);
    else
        (void)call::dict_item(all, key.get(), &there);
    const ref kept = ref::take(there);
    // Nobody is to find it by the collector, and empty it.
    if (PyObject_GC_IsTracked(all) != 0) PyObject_GC_UnTrack(all);
    return kept.get() == function;
}

/// The function at the end of "package.module.name"; nothing, without an exception, when there is none.
[[nodiscard]] inline library_function function_at(std::string_view path) {
    std::size_t dot = path.find('.');
    // The package of an object that exists has been imported; what is not there is not looked for.
    ref found = ref::take(call::imported_module(std::string(path.substr(0, dot)).c_str()));
    while (found && dot != std::string_view::npos) {
        const std::size_t end = path.find('.', dot + 1);
        const std::string name(path.substr(dot + 1, end - dot - 1));
        ref next = ref::take(call::attr(found.get(), name.c_str()));
        if (!next && end != std::string_view::npos && PyErr_ExceptionMatches(PyExc_AttributeError) != 0) {
            // A submodule that nobody has imported yet.
            PyErr_Clear();
            next = ref::take(call::import_module(std::string(path.substr(0, end)).c_str()));
        }
        found = std::move(next);
        dot = end;
    }
    if (PyErr_Occurred() != nullptr &&
        (PyErr_ExceptionMatches(PyExc_ImportError) != 0 || PyErr_ExceptionMatches(PyExc_AttributeError) != 0))
        PyErr_Clear();
    return {std::move(found), std::string(path)};
}

/// A function of the standard's namespace of an array, `__array_namespace__()`, or of the package its type is
/// defined in; nothing, without an exception, when neither has one.
[[nodiscard]] inline library_function function_named(PyObject* like, const char* name) {
    const ref space = namespace_of(like);
    const ref label = space ? ref::take(call::attr(space.get(), "__name__")) : ref();
    const char* const text = label && PyUnicode_Check(label.get()) ? PyUnicode_AsUTF8(label.get()) : nullptr;
    ref function = text != nullptr ? ref::take(call::attr(space.get(), name)) : ref();
    if (function) return {std::move(function), sentence({"namespace ", text, ".", name})};
    if (!forget_answer()) return {};
    const ref type = class_of(like);
    const std::string package = defining_package(as_type(type));
    return package.empty() || package == "builtins" ? library_function{}
                                                    : function_at(sentence({package, ".", name}));
}

/// Whether the type itself has a function `from_dlpack`.
[[nodiscard]] inline bool has_from_dlpack(PyTypeObject* type) noexcept {
    if (!ref::take(call::type_attr(type, "from_dlpack"))) return false;
    const ref found = ref::take(call::attr(reinterpret_cast<PyObject*>(type), "from_dlpack"));
    return found && PyCallable_Check(found.get()) != 0;
}

/// Whether all that the type has is memory to look at: a buffer, NumPy's array interface, or Arrow's stream
/// (a column of pandas or polars). Its library makes no arrays of it, and whoever passes such an object
/// expects NumPy's.
[[nodiscard]] inline bool shows_memory_alone(const type_plan& plan, const interpreter& names) noexcept {
    const auto declares = [&](std::initializer_list<PyObject*> any_of) {
        return is_any(any_of, [&](PyObject* name) {
            return static_cast<bool>(ref::take(call::type_attr(plan.type, name)));
        });
    };
    return plan.table == nullptr &&
           (plan.has_buffer || declares({names.array_interface, names.arrow_array, names.arrow_stream})) &&
           !declares({names.dlpack, names.cuda_array_interface, names.arrow_device_array});
}

/// What makes arrays like some object: a copy of the plan of its type, for what follows runs foreign code.
struct array_maker : type_plan {
    ref alive;                     ///< the type: the object may get another
    library_function from, empty;  ///< as found just now; nothing when the plan knew

    explicit array_maker(const type_plan& plan) noexcept
        : type_plan(plan), alive(ref::borrow(reinterpret_cast<PyObject*>(plan.type))) {}

    /// Looks for it; false with an exception set on failure.
    [[nodiscard]] bool resolve(PyObject* like, py::interpreter& here) noexcept try {
        if (table != nullptr && table->managed_tensor_to_py_object_no_sync != nullptr) {
            maker.kind = maker_kind::exchange_table;
        } else if (numpy_struct) {
            maker.kind = maker_kind::numpy;
        } else if (library != nullptr && library->from_dlpack != nullptr) {
            from = function_at(library->from_dlpack);
            maker.kind = library->from_capsule ? maker_kind::of_capsule : maker_kind::function;
        } else if (has_from_dlpack(type)) {
            maker.kind = maker_kind::type_method;
        } else {
            from = function_named(like, "from_dlpack");
            maker.kind = maker_kind::function;
        }
        if (PyErr_Occurred() != nullptr) return false;
        const bool by_function = maker.kind == maker_kind::function || maker.kind == maker_kind::of_capsule;
        if (by_function && !from.function) {
            maker.kind = maker_kind::none;
            if (shows_memory_alone(*this, here) && numpy_abi::functions::find(here))
                maker.kind = maker_kind::numpy;
            if (!forget_answer()) return false;  // without NumPy it is a Tensor
        }
        if (library != nullptr && library->empty != nullptr)
            empty = function_at(library->empty);
        else if (by_function && !immutable && maker.kind != maker_kind::numpy)
            empty = function_named(like, "empty");
        maker.from = from.function.get();
        maker.empty = empty.function.get();
        return PyErr_Occurred() == nullptr;
    } catch (...) {
        raise_caught();
        return false;
    }
};

TENON_COLD [[nodiscard]] inline std::optional<array_maker> find_maker(PyObject* like,
                                                                      interpreter& here) noexcept {
    const nesting_level level;
    if (!level) return std::nullopt;
    const looked_at seen(like, here);
    if (!seen) return std::nullopt;
    type_plan plan = seen.plan();
    std::optional<array_maker> made(std::in_place, plan);
    if (!made->resolve(like, here)) return std::nullopt;
    const bool is_kept = keep_function(here, made->from) && keep_function(here, made->empty);
    if (PyErr_Occurred() != nullptr) return std::nullopt;
    made->maker.home = &here;
    if (is_kept) plan.maker = made->maker;
    remember_plan(plan);  // dated before it was made: a change in between leaves it out of date
    return made;
}

/// The plan of an object's type, if it remembers what makes arrays there; null if it does not. Good until
/// other code runs.
[[nodiscard]] inline const type_plan* plan_with_maker(PyObject* like, const interpreter& here) noexcept {
    const type_plan* const known = like != nullptr ? find_plan_of(like) : nullptr;
    return known != nullptr && known->maker.kind != maker_kind::unresolved && known->maker.home == &here
               ? known
               : nullptr;
}

/// What makes arrays like an object, as its type's plan remembers it: nothing does for null and None. Nullopt
/// with an exception set on failure.
[[nodiscard]] inline std::optional<array_maker> maker_of(PyObject* like, interpreter& here) noexcept {
    if (like == nullptr || like == Py_None) return std::optional<array_maker>(std::in_place, type_plan{});
    if (const type_plan* const known = plan_with_maker(like, here)) [[likely]]
        return std::optional<array_maker>(std::in_place, *known);
    return find_maker(like, here);
}

/// What makes arrays of a library that is known by its name alone: it is imported if need be. Nullopt with an
/// exception set on failure; ImportError says what to install.
[[nodiscard]] inline std::optional<array_maker> maker_of_library(const library_row& row) noexcept try {
    const nesting_level level;
    if (!level) return std::nullopt;
    const std::string name(row.name);
    if (!ref::take(call::import_module(name.c_str()))) {
        if (PyErr_ExceptionMatches(PyExc_ModuleNotFoundError) == 0) return std::nullopt;
        const std::string distribution(row.distribution.empty() ? row.name : row.distribution);
        ref cause = pending_exception();
        PyErr_Format(PyExc_ModuleNotFoundError, "tenon: %s is not installed; pip install %s", name.c_str(),
                     distribution.c_str());
        blame(std::move(cause));
        return std::nullopt;
    }
    type_plan plan;
    plan.library = &row;
    plan.immutable = row.immutable;
    std::optional<array_maker> made(std::in_place, plan);
    if (row.from_dlpack != nullptr) {
        made->from = function_at(row.from_dlpack);
        made->maker.from = made->from.function.get();
        made->maker.kind = row.from_capsule ? maker_kind::of_capsule : maker_kind::function;
        if (made->maker.from != nullptr) return made;
        if (PyErr_Occurred() == nullptr)
            PyErr_Format(PyExc_ImportError, "tenon: this %s has no %s", name.c_str(), row.from_dlpack);
        return std::nullopt;
    }
    made->maker.kind = maker_kind::numpy;
    return made;
} catch (...) {
    raise_caught();
    return std::nullopt;
}

/// Lets go of what a table that we know has allocated: `home` is that table.
inline void release_allocated(void* subject, void*) noexcept { foreign::call_deleter(subject, true); }

}  // namespace tenon::py::detail
