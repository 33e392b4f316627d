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
#include <tenon/detail/config.hpp>
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
        Py_ssize_t size = 0;  // a name may have a NUL in it, and is not to be taken for its beginning
        const char* const text = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(names, i), &size);
        if (text == nullptr) PyErr_Clear();
        return text != nullptr ? std::string_view(text, static_cast<std::size_t>(size)) : "?";
    }
};

namespace detail {

/// For a message, which ends at the first NUL.
[[nodiscard]] inline std::string quoted(std::string_view name) {
    std::string shown = "'";
    for (const char c : name) shown += c != '\0' ? std::string(1, c) : "\\0";
    return shown + "'";
}

[[nodiscard]] inline std::string too_many(Py_ssize_t takes, Py_ssize_t got) {
    return "takes " + std::to_string(takes) + " positional argument" + (takes == 1 ? "" : "s") + ", got " +
           std::to_string(got);
}

/// What stands in a list, a tuple or another sequence now, as a tuple; text is none. Null with an exception
/// set when it is no sequence.
[[nodiscard]] inline py::ref items_of(PyObject* obj) noexcept {
    if (PySequence_Check(obj) == 0 || PyUnicode_Check(obj) || PyBytes_Check(obj)) {
        PyErr_SetString(PyExc_TypeError, "tenon: not a sequence");
        return {};
    }
    if (PyList_CheckExact(obj)) return py::ref::take(py::call::list_items(obj));
    return py::ref::take(foreign_code([&] { return PySequence_Tuple(obj); }));
}

/// The phrases as one: "float32[*] or float64[*]".
[[nodiscard]] inline std::string join(const std::vector<std::string_view>& phrases) {
    std::string out;
    for (const std::string_view p : phrases) out += (out.empty() ? "" : " or ") + std::string(p);
    return out;
}

/// Why `obj` is none of the arrays named; empty text when it is one.
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

/// An annotation for a reader: "float32[*] or None".
[[nodiscard]] inline std::string in_words(std::string_view annotation) {
    std::vector<std::string_view> parts = union_parts(annotation);
    for (std::string_view& part : parts) part = phrase_of(part).value_or(part);
    return join(parts);
}

[[nodiscard]] inline refusal why_not_all(PyObject* obj, std::string_view annotation, const std::string& who,
                                         const std::string& name);

/// Why `obj` is nothing that an annotation takes; empty text when it is, or may be: what other casters take
/// is not known here.
[[nodiscard]] inline refusal why_not_annotation(PyObject* obj, std::string_view annotation,
                                                const std::string& who, const std::string& name) {
    std::vector<std::string_view> arrays;
    std::string_view container;
    bool is_open = false;
    for (std::string_view part : union_parts(annotation)) {
        if (kind_of(part) == "Annotated" && is_container(element_annotation(part)))
            part =
                element_annotation(part);  // pybind11's std::array: Annotated[Sequence[...], "FixedSize(2)"]
        if (part == "None") {
            if (obj == Py_None) return {};
        } else if (const auto phrase_text = phrase_of(part)) {
            arrays.push_back(*phrase_text);
        } else if (is_container(part) && mentions_phrase(part)) {
            container = part;
        } else {
            is_open = true;
        }
    }
    const bool looks_contained = PyList_Check(obj) || PyTuple_Check(obj) || PyDict_Check(obj);
    if (!container.empty() && (looks_contained || (arrays.empty() && !is_open)))
        return is_open ? refusal{} : why_not_all(obj, container, who, name);
    if (arrays.empty()) return {};
    refusal why = why_none_of(obj, arrays, name.ends_with(']') ? who + "," : who, name);
    return is_open && why.is_no_array ? refusal{} : std::move(why);
}

/// The same for each element of a list, a tuple or a dict.
inline refusal why_not_all(PyObject* obj, std::string_view annotation, const std::string& who,
                           const std::string& name) {
    const std::vector<std::string_view> parts = tuple_parts(annotation);
    const std::string_view each = element_annotation(annotation);
    const auto look = [&](PyObject* item, const std::string& where, std::size_t at = 0) {
        return why_not_annotation(item, at < parts.size() ? parts[at] : each, who + ", item " + where,
                                  name + "[" + where + "]");
    };
    refusal out;
    const bool wants_dict = is_mapping(annotation);
    const py::ref items = wants_dict ? py::ref() : items_of(obj);  // what is asked may change the list
    if (!items && !wants_dict && is_call_over()) return out;
    if (!items) PyErr_Clear();
    if (wants_dict ? !PyDict_Check(obj) : !items) {
        out.text = who + (wants_dict ? " is not a dict of arrays" : " is not a list of arrays") +
                   ": expected each to be " + in_words(each) + ", got " + type_name(obj);
        return out;
    }
    if (wants_dict) {
        PyObject *key = nullptr, *value = nullptr;
        const py::ref copy = py::ref::take(PyDict_Copy(obj));  // what is asked may change the dict
        for (Py_ssize_t at = 0; copy && PyDict_Next(copy.get(), &at, &key, &value) != 0;) {
            // Whoever asks the collector finds the copy, too, and may empty it.
            const py::ref held_key = py::ref::borrow(key), held_value = py::ref::borrow(value);
            const char* const text = PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : nullptr;
            if (text == nullptr) {
                PyErr_Clear();
                out.text = who + " has a key that is no text: got " + type_name(key);
                return out;
            }
            refusal why = look(value, quoted(text));
            if (!why.text.empty() || PyErr_Occurred() != nullptr) return why;
        }
        return out;
    }
    const Py_ssize_t count = PyTuple_GET_SIZE(items.get());
    if (!parts.empty() && static_cast<Py_ssize_t>(parts.size()) != count) {
        out.text = who + " has the wrong length: expected " + std::to_string(parts.size()) + " items, got " +
                   std::to_string(count);
        return out;
    }
    for (Py_ssize_t i = 0; i < count; ++i) {
        refusal why = look(PyTuple_GET_ITEM(items.get(), i), std::to_string(i), static_cast<std::size_t>(i));
        if (!why.text.empty() || PyErr_Occurred() != nullptr) return why;
    }
    return out;
}

/// Why values do not fit the parameters they stand for, null for a value that is missing.
[[nodiscard]] inline refusal why_not_values(const std::vector<parameter_text>& parameters,
                                            const std::vector<PyObject*>& values) {
    refusal out;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const parameter_text& p = parameters[i];
        if (p.stars != 0) continue;
        if (values[i] == nullptr) {
            if (p.has_default) continue;
            out.text = "argument " + quoted(p.name) + " is missing";
            return out;
        }
        out = why_not_annotation(values[i], p.annotation, "argument " + quoted(p.name), std::string(p.name));
        if (!out.text.empty() || PyErr_Occurred() != nullptr) return out;
    }
    return out;
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
    return why_not_values(parameters, values);
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
    // The binders leave the functions behind properties nameless.
    raise_refusal((function.empty() ? "" : std::string(function) + "(): ") + why.text, std::move(why.cause));
    return true;
}

}  // namespace detail

/// Gives the pending TypeError of a binder the reasons why no overload took the arguments. What is not such
/// an exception, concerns no array, or is of another function than `name_of()`, stays as it is: the function
/// may have run, and called that.
template <class NameOf>
TENON_COLD void explain_pending(const call_arguments& given, NameOf&& name_of) noexcept try {
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) return;
    py::ref original = py::pending_exception();
    if (!original) return;
    const std::string message = detail::text_of_exception(original.get());
    if (PyErr_Occurred() != nullptr) return;
    auto listed = detail::listed_overloads::in(message);
    if (listed && listed->function != name_of()) listed.reset();
    bool concerns_arrays = false;
    std::string list;
    py::ref cause;
    if (listed) {
        const Py_ssize_t skipped = listed->is_constructor ? 1 : 0;
        std::size_t number = 0;
        for (const std::string_view signature : listed->signatures) {
            refusal why = detail::why_not_signature(signature, given, skipped);
            if (PyErr_Occurred() != nullptr) return;  // Ctrl-C while asking: that is what is to be told
            concerns_arrays = concerns_arrays || mentions_phrase(signature);
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
