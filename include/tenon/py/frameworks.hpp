// tenon/py/frameworks.hpp: the one list of libraries whose habits cannot be read off a protocol.
#pragma once

#include <array>
#include <cstring>
#include <string_view>

#include <tenon/py/call.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/ref.hpp>

namespace tenon::py {

/// What is known of a library beyond what its objects say.
struct framework_habits {
    std::string_view package;    ///< first part of the `__module__` of its array type
    bool immutable = false;      ///< its arrays must never be written to, whatever a struct's flags say
    bool buffer_first = false;   ///< the buffer protocol says the same as `__dlpack__`, faster (measured)
    bool honest_borrow = false;  ///< borrowed tensors of its own exchange table are writable ones
    bool guarded = false;        ///< `is_conj`, `is_neg` and `requires_grad` must be asked
    bool dtype_first = false;    ///< `__dlpack__` aborts the process for dtypes it cannot express
};

inline constexpr std::array known_frameworks{
    framework_habits{.package = "jaxlib", .immutable = true, .buffer_first = true},
    framework_habits{.package = "jax", .immutable = true, .buffer_first = true},
    framework_habits{.package = "tensorflow", .immutable = true, .dtype_first = true},
    framework_habits{.package = "torch", .honest_borrow = true, .guarded = true},
};

/// The habits of the library a type belongs to, or null. Runs no code of the type's own.
[[nodiscard]] inline const framework_habits* habits_of(PyTypeObject* type) noexcept {
    // A heap type made by a class statement has __module__ in its dictionary, a C type in front of tp_name.
    std::string_view module = type->tp_name != nullptr ? type->tp_name : "";
    const ref name = ref::take(PyUnicode_InternFromString("__module__"));
    if (!name) {
        PyErr_Clear();
        return nullptr;
    }
    const ref declared = ref::take(call::type_attr(type, name.get()));
    if (declared && PyUnicode_Check(declared.get())) {
        if (const char* text = PyUnicode_AsUTF8(declared.get()))
            module = text;
        else
            PyErr_Clear();
    }
    module = module.substr(0, module.find('.'));
    for (const framework_habits& f : known_frameworks)
        if (f.package == module) return &f;
    return nullptr;
}

}  // namespace tenon::py
