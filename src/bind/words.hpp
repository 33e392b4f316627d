// src/bind/words.hpp: why an object does not fit a parameter, in one sentence with the way out.
#pragma once

#include <string>
#include <string_view>

#include <tenon/bind/parameter.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/ref.hpp>
#include "record.hpp"

namespace tenon::bind {

/// A sentence, and the exception it has the reason from, if any.
struct refusal {
    std::string text;  ///< empty when nothing speaks against the object
    py::ref cause;
};

/// "numpy.ndarray", "list": the type as Python shows it. An exception is left only if it ends the call.
[[nodiscard]] std::string type_name(PyObject* obj);

/// "float32[*] or float64[*]".
[[nodiscard]] std::string words_of(const parameter_type& type);

/// "'x'", for a message, which ends at the first NUL.
[[nodiscard]] std::string quoted(std::string_view name);

/// What an exception says, without its type. An exception is left only if it ends the call.
[[nodiscard]] std::string text_of_exception(PyObject* exception);

/// Why `obj`, which stands for a parameter of this type, does not fit, as far as that was noted. `who` is
/// what the sentence begins with ("argument 'x'"), `name` what the advice calls the array. An exception is
/// left pending, and no text, when one has come up that ends the call.
[[nodiscard]] refusal why_not(PyObject* obj, const parameter_type& type, const std::string& who,
                              const std::string& name);

}  // namespace tenon::bind
