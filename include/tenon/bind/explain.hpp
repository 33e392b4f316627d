// tenon/bind/explain.hpp: puts the reasons into a binder's "incompatible function arguments".
//
// A binder tries its overloads, and when none fits it raises a TypeError that lists their signatures. By then
// the reasons are gone; but the signatures say in words what every array must be (phrase.hpp), and so they
// can be asked once more, one after the other, this time for the reason.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/bind/phrase.hpp>
#include <tenon/bind/refusal.hpp>
#include <tenon/bind/signature.hpp>
#include <tenon/core/attributes.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/py/ref.hpp>

namespace tenon::bind {

/// The arguments of a call, as a vectorcall has them.
struct call_arguments {
    PyObject* const* values;
    Py_ssize_t positional;
    PyObject* names;  ///< of the keyword arguments behind the positional ones, or null

    [[nodiscard]] Py_ssize_t keywords() const noexcept {
        return names != nullptr ? PyTuple_GET_SIZE(names) : 0;
    }
    [[nodiscard]] std::string_view keyword(Py_ssize_t i) const noexcept {
        const char* const text = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, i));
        if (text == nullptr) PyErr_Clear();
        return text != nullptr ? text : "?";
    }
};

namespace detail {

[[nodiscard]] inline std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

[[nodiscard]] inline std::string too_many(Py_ssize_t takes, Py_ssize_t got) {
    return "takes " + std::to_string(takes) + " positional argument" + (takes == 1 ? "" : "s") + ", got " +
           std::to_string(got);
}

/// What stands in a list, a tuple or another sequence now, as a tuple; text is none. Null with an exception
/// set when it is no sequence.
[[nodiscard]] inline py::ref items_of(PyObject* obj) noexcept {
    if (PySequence_Check(obj) == 0 || PyUnicode_Check(obj) != 0 || PyBytes_Check(obj) != 0) {
        PyErr_SetString(PyExc_TypeError, "tenon: not a sequence");
        return {};
    }
    return py::ref::take(foreign_code([&] { return PySequence_Tuple(obj); }));
}

/// The phrases as one: "float32[*] or float64[*]".
[[nodiscard]] inline std::string join(const std::vector<std::string_view>& phrases) {
    std::string out;
    for (const std::string_view p : phrases) out += (out.empty() ? "" : " or ") + std::string(p);
    return out;
}

/// Why `obj` is none of the arrays named, by the one that comes closest; empty text when it is one.
[[nodiscard]] inline refusal why_none_of(PyObject* obj, const std::vector<std::string_view>& phrases,
                                         std::string_view who, std::string_view name) {
    refusal closest;
    const std::string expected = join(phrases);
    for (const std::string_view p : phrases) {
        const auto wanted = read_request::from(p);
        if (!wanted) return {};
        refusal why = why_not(obj, wanted->value(), wanted->converts(), who, name, expected);
        if (why.text.empty()) return {};
        if (closest.text.empty() || (closest.other_type && !why.other_type)) closest = std::move(why);
    }
    return closest;
}

/// Why `obj` is not what an annotation says, as far as arrays go; empty text when it is. `who` is what the
/// sentence begins with, `name` what the advice calls the object.
[[nodiscard]] inline refusal why_not_annotated(PyObject* obj, std::string_view annotation,
                                               const std::string& who, const std::string& name);

/// The same for each value of a dict, by the annotation of the values.
[[nodiscard]] inline refusal why_not_values(PyObject* dict, std::string_view annotation,
                                            const std::string& who, const std::string& name) {
    refusal out;
    if (PyDict_Check(dict) == 0) {
        out.text = who + " is not a dict of arrays: expected each to be " + join(phrases_in(annotation)) +
                   ", got " + type_name(dict);
        return out;
    }
    PyObject *key = nullptr, *value = nullptr;
    const py::ref copy = py::ref::take(PyDict_Copy(dict));  // what is asked may change the dict
    for (Py_ssize_t at = 0; copy && PyDict_Next(copy.get(), &at, &key, &value) != 0;) {
        const char* const text = PyUnicode_Check(key) != 0 ? PyUnicode_AsUTF8(key) : nullptr;
        if (text == nullptr) {
            PyErr_Clear();
            out.text = who + " has a key that is no text: got " + type_name(key);
            return out;
        }
        const std::string where = quoted(text);
        out = why_not_annotated(value, annotation, who + ", item " + where + ",", name + "[" + where + "]");
        if (!out.text.empty() || PyErr_Occurred() != nullptr) return out;
    }
    return out;
}

/// The same for each item of a list, all by one annotation, or of a tuple, each by its own.
[[nodiscard]] inline refusal why_not_items(PyObject* list, const std::vector<std::string_view>& annotations,
                                           bool is_tuple, const std::string& who, const std::string& name) {
    refusal out;
    const py::ref items = items_of(list);
    if (!items) {
        if (is_call_over()) return out;
        PyErr_Clear();
        std::vector<std::string_view> phrases;
        for (const std::string_view a : annotations)
            for (const std::string_view p : phrases_in(a)) phrases.push_back(p);
        out.text = who + " is not a list of arrays: expected each to be " + join(phrases) + ", got " +
                   type_name(list);
        return out;
    }
    const auto count = static_cast<std::size_t>(PyTuple_GET_SIZE(items.get()));
    if (is_tuple && count != annotations.size()) {
        out.text = who + " has the wrong length: expected " + std::to_string(annotations.size()) +
                   " items, got " + std::to_string(count);
        return out;
    }
    for (std::size_t i = 0; i < count; ++i) {
        const std::string where = std::to_string(i);
        out = why_not_annotated(PyTuple_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i)),
                                annotations[is_tuple ? i : 0], who + ", item " + where + ",",
                                name + "[" + where + "]");
        if (!out.text.empty() || PyErr_Occurred() != nullptr) return out;
    }
    return out;
}

inline refusal why_not_annotated(PyObject* obj, std::string_view annotation, const std::string& who,
                                 const std::string& name) {
    const std::vector<std::string_view> phrases = phrases_in(annotation);
    if (phrases.empty()) return {};
    if (obj == Py_None && annotation.find("None") != std::string_view::npos) return {};
    const container_text container = read_container(annotation);
    switch (container.kind) {
        case container_kind::none:
            return why_none_of(obj, phrases, who, name);
        case container_kind::dict:
            return why_not_values(obj, container.elements.back(), who, name);
        case container_kind::list:
        case container_kind::tuple:
            break;
    }
    return why_not_items(obj, container.elements, container.kind == container_kind::tuple, who, name);
}

/// Why a call does not fit one signature, as far as that can be seen from its words; empty when it cannot.
/// `skipped` parameters are not in the text (the `self` of a constructor).
[[nodiscard]] inline refusal why_not_signature(std::string_view signature, const call_arguments& given,
                                               Py_ssize_t skipped) {
    const std::vector<parameter_text> parameters = read_signature(signature);
    std::vector<PyObject*> values(parameters.size(), nullptr);
    refusal out;
    Py_ssize_t next = skipped;
    bool takes_rest = false, takes_names = false;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        takes_rest = takes_rest || parameters[i].stars == 1;
        takes_names = takes_names || parameters[i].stars == 2;
        if (parameters[i].stars == 0 && !parameters[i].is_keyword_only && next < given.positional)
            values[i] = given.values[next++];
    }
    if (next < given.positional && !takes_rest) {
        out.text = too_many(next - skipped, given.positional - skipped);
        return out;
    }
    for (Py_ssize_t k = 0; k < given.keywords(); ++k) {
        const std::string_view name = given.keyword(k);
        bool known = takes_names;
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            if (parameters[i].name != name || parameters[i].stars != 0) continue;
            known = true;
            if (values[i] != nullptr) {
                out.text = "got two values for argument " + quoted(name);
                return out;
            }
            values[i] = given.values[given.positional + k];
        }
        if (!known) {
            out.text = "has no argument " + quoted(name);
            return out;
        }
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const parameter_text& p = parameters[i];
        if (p.stars != 0) continue;
        if (values[i] == nullptr) {
            if (p.has_default) continue;
            out.text = "argument " + quoted(p.name) + " is missing";
            return out;
        }
        out = why_not_annotated(values[i], p.annotation, "argument " + quoted(p.name), std::string(p.name));
        if (!out.text.empty() || PyErr_Occurred() != nullptr) return out;
    }
    return out;
}

/// The signatures in a binder's message, or nothing when it is not one of those.
struct listed_overloads {
    std::string_view function;
    bool is_constructor = false;
    std::vector<std::string_view> signatures;

    [[nodiscard]] static std::optional<listed_overloads> in(std::string_view message) {
        static constexpr std::string_view heads[] = {"(): incompatible function arguments. ",
                                                     "(): incompatible constructor arguments. "};
        listed_overloads out;
        std::size_t at = message.find(heads[0]);
        if (at == std::string_view::npos) {
            at = message.find(heads[1]);
            out.is_constructor = true;
        }
        if (at == std::string_view::npos) return std::nullopt;
        out.function = message.substr(0, at);
        message = message.substr(0, message.find("\n\nInvoked with"));
        for (std::size_t n = 1;; ++n) {
            const std::string mark = "\n    " + std::to_string(n) + ". ";
            at = message.find(mark);
            if (at == std::string_view::npos) break;
            message.remove_prefix(at + mark.size());
            const std::size_t next = message.find("\n    " + std::to_string(n + 1) + ". ");
            std::string_view signature = message.substr(0, next);
            while (!signature.empty() && signature.back() == '\n') signature.remove_suffix(1);
            out.signatures.push_back(signature);
        }
        if (out.signatures.empty()) return std::nullopt;
        return out;
    }
};

/// Raises TypeError with the sentence, its cause behind it.
inline void raise_refusal(const std::string& sentence, py::ref cause) noexcept {
    PyErr_SetString(PyExc_TypeError, sentence.c_str());
    if (!cause) return;
    const py::ref made = py::pending_exception();
    if (!made) return;
    PyException_SetCause(made.get(), cause.release());
    py::restore_exception(py::ref::borrow(made.get()));
}

/// The sentence for one signature and no other.
[[nodiscard]] inline bool raise_for_one(std::string_view function, refusal&& why) {
    if (why.text.empty()) return false;
    raise_refusal(std::string(function) + "(): " + why.text, std::move(why.cause));
    return true;
}

}  // namespace detail

/// Gives the pending TypeError of a binder the reasons why no overload took the arguments. What is not such
/// an exception, or concerns no array, stays as it is.
TENON_COLD inline void explain_pending(const call_arguments& given) noexcept try {
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) return;
    py::ref original = py::pending_exception();
    if (!original) return;
    const std::string message = detail::text_of_exception(original.get());
    const auto listed = detail::listed_overloads::in(message);
    bool concerns_arrays = false;
    std::string list;
    py::ref cause;
    if (listed) {
        const Py_ssize_t skipped = listed->is_constructor ? 1 : 0;
        std::size_t number = 0;
        for (const std::string_view signature : listed->signatures) {
            refusal why = detail::why_not_signature(signature, given, skipped);
            if (PyErr_Occurred() != nullptr) return;  // Ctrl-C while asking: that is what is to be told
            concerns_arrays = concerns_arrays || !phrases_in(signature).empty();
            if (listed->signatures.size() == 1) {
                if (concerns_arrays && detail::raise_for_one(listed->function, std::move(why))) return;
                break;
            }
            list += "\n    " + std::to_string(++number) + ". ";
            if (signature.starts_with('(')) list += listed->function;  // pybind11 leaves it out
            list += std::string(signature) + "\n       " +
                    (why.text.empty() ? "the arguments do not fit" : why.text);
            if (!cause) cause = std::move(why.cause);
        }
        if (listed->signatures.size() > 1 && concerns_arrays) {
            detail::raise_refusal(
                std::string(listed->function) + "(): no overload takes these arguments:" + list,
                std::move(cause));
            return;
        }
    }
    py::restore_exception(std::move(original));
} catch (...) {
    py::raise_caught();
}

}  // namespace tenon::bind
