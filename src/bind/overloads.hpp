// src/bind/overloads.hpp: the overloads of a function, and why a call fits none of them.
//
// A binder tries its overloads, and when none fits it raises a TypeError that lists their signatures. What is
// known of the parameters, and was noted while they were loaded, is put under each of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tenon/bind/call.hpp>
#include <tenon/bind/parameter.hpp>
#include <tenon/py/python.hpp>
#include "words.hpp"

namespace tenon::bind {

/// A parameter that outlives the binder's own words for it.
struct known_parameter {
    std::string name;
    parameter is;
};
struct known_overload {
    std::vector<known_parameter> parameters;
};
class overload_list {
public:
    std::vector<known_overload> all;
};

/// The arguments of a call, as a vectorcall has them.
struct call_arguments {
    PyObject* const* values;
    Py_ssize_t positional;
    PyObject* names;  ///< of the keyword arguments behind the positional ones, or null

    [[nodiscard]] Py_ssize_t keywords() const noexcept {
        return names != nullptr ? PyTuple_GET_SIZE(names) : 0;
    }
    [[nodiscard]] std::string_view keyword(Py_ssize_t i) const noexcept {
        Py_ssize_t size = 0;  // a name may have a NUL in it, and is not to be taken for its beginning
        const char* const text = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(names, i), &size);
        if (text == nullptr) PyErr_Clear();
        return text != nullptr ? std::string_view(text, static_cast<std::size_t>(size)) : "?";
    }
};

/// "takes 1 positional argument, got 2".
[[nodiscard]] std::string too_many(Py_ssize_t takes, Py_ssize_t got);

/// Gives the pending TypeError of a binder the reasons why no overload took the arguments. What is not such
/// an exception, concerns no array, or is of another function than `name`, stays as it is: the function may
/// have run, and called that.
void explain_pending(const call_arguments& given, const overload_list& known, std::string_view name) noexcept;

}  // namespace tenon::bind
