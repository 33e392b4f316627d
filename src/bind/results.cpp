// src/bind/results.cpp: a result that names its library becomes an array of it, if it is what was declared.
#include <tenon/bind/results.hpp>
#include <tenon/bind/visit.hpp>
#include "../py/export/all.hpp"
#include "words.hpp"

namespace tenon::bind {

/// "float64[10, 3]".
[[nodiscard]] inline std::string type_and_shape(const tensor_ref& t) {
    return sentence({name(t.dtype()), "[", listed(axes(t.shape())), "]"});
}

/// The function's author, not its caller, has to look at it.
TENON_COLD inline void raise_undeclared(const tensor_ref& made, const declared_result& declared,
                                        const error& unmet) {
    const std::string text = sentence({"tenon: the function is declared to return ", declared.words, " as ",
                                       declared.library, " has it, and returned ", type_and_shape(made),
                                       made.is_read_only() ? ", read-only" : "", ", on ", name(made.device()),
                                       ", which ", verdict_of(unmet, declared.wanted, "").complaint});
    PyErr_SetString(PyExc_RuntimeError, text.c_str());
}

TENON_INLINE PyObject* library_to_python(result<tensor>&& made, const declared_result& declared) noexcept
    try {
    if (made && py::attached_thread_state() != nullptr) {
        const py::detail::taken taken(*made);
        if (py::detail::refuse_nothing(*made)) return nullptr;
        if (const auto met = check(*made, declared.wanted); !met)
            return (raise_undeclared(*made, declared, met.error()), nullptr);
        if (declared.is_read_only) made->set_read_only();
        return py::to_library(std::move(*made), declared.library);
    }
    return py::to_library(std::move(made), declared.library);
} catch (...) {
    py::raise_caught();
    return nullptr;
}

TENON_INLINE void check_taken(dtype type, std::span<const dtype> types) {
    if (!is_any(types, [&](dtype one) { return one == type; }))
        raise_not_taken(not_taken("the result can be", types.data(), types.size(), type));
}

TENON_INLINE void check_out(const tensor_ref& given, const axes& wanted) {
    if (is_same(given.shape(), wanted.values()) && !wanted.is_too_long()) return;
    throw std::invalid_argument(
        sentence({"tenon: the array given for the result has the shape [", listed(axes(given.shape())),
                  "], and the result the shape [", listed(wanted), "]"}));
}

}  // namespace tenon::bind
