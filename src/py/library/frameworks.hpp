// src/py/library/frameworks.hpp: the one list of libraries whose habits cannot be read off a protocol.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <tenon/detail/config.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/py/ref.hpp>
#include "../runtime/call.hpp"
#include "../runtime/exceptions.hpp"

namespace tenon::py {

/// What is known of a library beyond what its objects say.
struct framework_habits {
    std::string_view package;  ///< first part of the `__module__` of its array types
    bool immutable = false;    ///< its arrays must never be written to, whatever a struct's flags say
    /// Asked for no version, its `__dlpack__` gives a legacy struct even of memory that must not be written
    /// to: through us the same consumers get the same. Not so for the one class of it that refuses.
    bool hands_out_legacy = false;
    std::string_view legacy_refused_by = {};
    /// A class whose `__dlpack__` is wrong about strides (PyArrow 26, permuted axes): Arrow's interface is
    /// asked in its place.
    std::string_view arrow_rather_for = {};
    bool buffer_first = false;  ///< the buffer protocol says the same as `__dlpack__`, faster (measured)
    bool guarded = false;       ///< `is_conj`, `is_neg` and `requires_grad` must be asked
    bool dtype_first = false;   ///< `__dlpack__` aborts the process for dtypes it cannot express
    /// Its `__dlpack__` on CUDA is asked with the stream alone, and `__dlpack_device__` not at all: what they
    /// would add costs as much again, and the capsule says the rest (measured). Its arrays can be written to,
    /// unless `immutable`.
    bool stream_alone = false;
    bool always_cuda = false;  ///< it has no other arrays
    /// Its plain array class, as its package calls it. What trusts more than a protocol says (writable legacy
    /// structs, the library's stream, PyTorch's table and storages) trusts this very class:
    /// `is_library_class`.
    const char* array = nullptr;
    const char* array_base = nullptr;   ///< the class made in C that it derives from, where there is one
    const char* from_dlpack = nullptr;  ///< what makes its arrays, as a path through its modules
    bool from_capsule = false;          ///< that takes a legacy capsule, and no object
    const char* empty = nullptr;        ///< `empty(shape, dtype=...)`, where its arrays may be written to
    /// The module, compiled by Cython, and the C function in it, `intptr_t (int device)`, that says which
    /// CUDA stream the library works on: it is asked, instead of having another stream wait for that one.
    const char* stream_module = nullptr;
    const char* stream_function = nullptr;
};

/// Such a function; it may leave an exception.
using library_stream = std::intptr_t (*)(int device);

TENON_PRIVATE inline constexpr std::array known_frameworks{
    framework_habits{.package = "jaxlib",
                     .immutable = true,
                     .hands_out_legacy = true,
                     .buffer_first = true,
                     .stream_alone = true,
                     .from_dlpack = "jax.numpy.from_dlpack"},
    framework_habits{.package = "jax",
                     .immutable = true,
                     .hands_out_legacy = true,
                     .buffer_first = true,
                     .stream_alone = true,
                     .from_dlpack = "jax.numpy.from_dlpack"},
    framework_habits{.package = "tensorflow",
                     .immutable = true,
                     .hands_out_legacy = true,
                     .dtype_first = true,
                     .from_dlpack = "tensorflow.experimental.dlpack.from_dlpack",
                     .from_capsule = true},
    framework_habits{.package = "torch",
                     .guarded = true,
                     .array = "Tensor",
                     .array_base = "torch._C.TensorBase",
                     .from_dlpack = "torch.from_dlpack",
                     .empty = "torch.empty"},
    framework_habits{.package = "cupy",
                     .stream_alone = true,
                     .always_cuda = true,
                     .array = "ndarray",
                     .from_dlpack = "cupy.from_dlpack",
                     .empty = "cupy.empty",
                     .stream_module = "cupy_backends.cuda.stream",
                     .stream_function = "get_stream_ptr"},
    framework_habits{.package = "pyarrow",
                     .hands_out_legacy = true,
                     .legacy_refused_by = "pyarrow.lib.Tensor",
                     .arrow_rather_for = "pyarrow.lib.FixedShapeTensorArray"},
};

namespace detail {

/// The name of the package a type says it is defined in. Runs no code of the type's own, but for an `__eq__`
/// among its keys. The caller holds the type.
[[nodiscard]] inline std::string defining_package(PyTypeObject* type) {
    const ref name = ref::take(PyUnicode_InternFromString("__module__"));
    const ref declared = name ? ref::take(call::type_attr(type, name.get())) : ref();
    // A heap type made by a class statement has __module__ in its dictionary, a C type in front of tp_name.
    std::string_view module = type->tp_name != nullptr ? type->tp_name : "";
    if (declared && PyUnicode_Check(declared.get())) {
        if (const char* text = PyUnicode_AsUTF8(declared.get())) module = text;
    }
    PyErr_Clear();
    return std::string(module.substr(0, module.find('.')));
}

/// Asks `fn` of the type and then of its bases, one by one, until it says true. Each is held while it is
/// asked: that may give the type other bases.
template <class Fn>
void walk_bases(PyTypeObject* type, Fn&& fn) {
    for (ref held = ref::borrow(reinterpret_cast<PyObject*>(type)); held && !fn(as_type(held));)
        held = ref::borrow(reinterpret_cast<PyObject*>(as_type(held)->tp_base));
}

/// The habits of the library that defines this very type, or null. The caller holds the type.
[[nodiscard]] inline const framework_habits* habits_of_class(PyTypeObject* type) noexcept try {
    const std::string package = defining_package(type);
    for (const framework_habits& f : known_frameworks)
        if (f.package == package) return &f;
    return nullptr;
} catch (...) {  // no memory for a long name: none of ours
    return nullptr;
}

}  // namespace detail

/// The habits of the library a type comes from, itself or by a base class, or null.
[[nodiscard]] inline const framework_habits* habits_of(PyTypeObject* type) noexcept {
    const framework_habits* known = nullptr;
    detail::walk_bases(type, [&](PyTypeObject* t) {
        known = detail::habits_of_class(t);
        return known != nullptr;
    });
    return known;
}

/// Whether the type, or a base of it, has this name; a look at names alone.
[[nodiscard]] inline bool has_class_named(PyTypeObject* type, std::string_view name) noexcept {
    bool found = false;
    if (!name.empty()) detail::walk_bases(type, [&](PyTypeObject* t) { return found = name == t->tp_name; });
    return found;
}

/// Whether objects of the type leave their library as legacy structs, read-only or not.
[[nodiscard]] inline bool hands_out_legacy(PyTypeObject* type, const framework_habits& habits) noexcept {
    return habits.hands_out_legacy && !has_class_named(type, habits.legacy_refused_by);
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
    PyTypeObject* below = type;
    while (base != nullptr && below != nullptr && !is_base(below)) below = below->tp_base;
    if (below == nullptr) return false;
    const ref module = ref::take(call::imported_module(package));
    const ref found = module ? ref::take(call::attr(module.get(), name)) : ref();
    if (!forget_answer()) return false;
    return found.get() == reinterpret_cast<PyObject*>(type);
}
[[nodiscard]] inline bool is_library_class(PyTypeObject* type, const framework_habits& habits) noexcept {
    return habits.array != nullptr &&
           is_library_class(type, habits.package.data(), habits.array, habits.array_base);
}

namespace detail {

/// What has the library's words for element types: the package of a library we know, the standard's namespace
/// of the array, or the package its type is defined in. Nothing when there is none, and an exception only if
/// it ends the call.
[[nodiscard]] inline ref element_types_of(PyObject* like) {
    const ref type = class_of(like);
    const framework_habits* const habits = habits_of(as_type(type));
    const ref method = ref::take(PyUnicode_InternFromString("__array_namespace__"));
    ref found;
    if (habits == nullptr && method && ref::take(call::type_attr(as_type(type), method.get())))
        found = ref::take(call::method(like, method.get()));
    if (!found) {
        if (!forget_answer()) return {};
        const std::string package =
            habits != nullptr ? std::string(habits->package) : defining_package(as_type(type));
        found = ref::take(call::import_module(package.c_str()));
        if (!found) (void)forget_answer();
    }
    return found;
}

}  // namespace detail
}  // namespace tenon::py
