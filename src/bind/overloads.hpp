// src/bind/overloads.hpp: the overloads of a function, and why a call fits none of them.
//
// A binder tries its overloads, and when none fits it raises a TypeError that lists their signatures. What is
// known of the parameters, and was noted while they were loaded, is put under each of them.
#pragma once

#include <tenon/bind/call.hpp>
#include "../py/export/all.hpp"
#include "words.hpp"

namespace tenon::bind {

/// The type mentions an array, so that its refusal is ours to explain.
[[nodiscard]] inline bool is_ours(const parameter& p) noexcept {
    return p.type != nullptr && p.type->kind != parameter_kind::foreign;
}

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

/// Puts the arguments of a call in the places of the parameters that they stand for; null stays where one is
/// missing. The reason why they cannot be placed, or nothing. The first `skipped` parameters are not counted
/// (the `self` of a constructor).
[[nodiscard]] inline std::string place(const call_arguments& given, std::span<const parameter> parameters,
                                       PyObject** places, Py_ssize_t skipped = 0) {
    Py_ssize_t next = 0;
    bool takes_rest = false, takes_names = false;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        takes_rest = takes_rest || parameters[i].stars == 1;
        takes_names = takes_names || parameters[i].stars == 2;
        const bool is_positional = parameters[i].stars == 0 && !parameters[i].is_keyword_only && !takes_rest;
        if (is_positional && next < given.positional) places[i] = given.values[next++];
    }
    if (next < given.positional && !takes_rest) {
        const Py_ssize_t takes = next - skipped;
        return sentence({"takes ", takes, " positional argument", takes == 1 ? "" : "s", ", got ",
                         given.positional - skipped});
    }
    for (Py_ssize_t k = 0; k < given.keywords(); ++k) {
        const std::string_view name = given.keyword(k);
        std::size_t at = 0;
        while (at < parameters.size() && (parameters[at].stars != 0 || name_of(parameters, at) != name)) ++at;
        if (at == parameters.size() && takes_names) continue;
        if (at == parameters.size()) return sentence({"has no argument ", quoted(name)});
        if (places[at] != nullptr) return sentence({"got two values for argument ", quoted(name)});
        places[at] = given.values[given.positional + k];
    }
    return {};
}

/// Why the values, one for each parameter and null where one is missing, do not fit. `all` are those of the
/// function.
[[nodiscard]] inline refusal why_not_values(explainer& notes, std::span<const parameter> parameters,
                                            PyObject* const* values, std::span<const parameter> all) {
    refusal out;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const parameter& p = parameters[i];
        if (p.stars != 0 || (values[i] == nullptr && p.has_default)) continue;
        if (values[i] == Py_None && p.accepts_none) continue;
        const std::string name = name_of(parameters, i), who = sentence({"argument ", quoted(name)});
        if (values[i] == nullptr)
            out.text = sentence({who, " is missing"});
        else if (is_ours(p))
            out = notes.why_not(values[i], *p.type, {who, name, all});
        if (!out.text.empty() || PyErr_Occurred() != nullptr) return out;
    }
    return out;
}

/// The signatures in a binder's message: none when it is not one of those.
struct listed_overloads {
    std::string_view function;
    bool is_constructor = false;
    std::vector<std::string_view> signatures;

    explicit listed_overloads(std::string_view message) {
        const std::size_t head = message.find("(): incompatible ");
        if (head == std::string_view::npos) return;
        function = message.substr(0, head);
        is_constructor = message.substr(head).starts_with("(): incompatible constructor arguments. ");
        message = message.substr(0, message.find("\n\nInvoked with"));
        const auto mark = [](std::size_t n) { return sentence({"\n    ", n, ". "}); };
        std::size_t at = message.find(mark(1));
        for (std::size_t n = 1; at != std::string_view::npos; ++n) {
            message.remove_prefix(at + mark(n).size());
            at = message.find(mark(n + 1));
            const std::string_view signature = message.substr(0, at);
            signatures.push_back(signature.substr(0, signature.find_last_not_of('\n') + 1));
        }
    }
};

/// Raises TypeError with the sentence, its cause behind it.
inline void raise_refusal(const std::string& sentence, py::ref cause) noexcept {
    PyErr_SetString(PyExc_TypeError, sentence.c_str());
    py::blame(std::move(cause));
}

/// The sentence for one signature and no other.
[[nodiscard]] inline bool raise_for_one(std::string_view function, refusal&& why) {
    if (why.text.empty()) return false;
    // The binders leave the functions behind properties nameless.
    raise_refusal(sentence({function, function.empty() ? "" : "(): ", why.text}), std::move(why.cause));
    return true;
}

/// Raises the reasons, each under its signature. False when there is nothing to say that the binder has not,
/// and no exception is pending.
[[nodiscard]] inline bool raise_listed(explainer& notes, const listed_overloads& listed,
                                       const call_arguments& given, std::span<const overload> known) {
    const std::size_t count = listed.signatures.size();
    if (count == 0 || known.size() < count) return false;
    // Binders leave out the first: a `__new__` that they have made themselves.
    known = known.last(count);
    const Py_ssize_t skipped = listed.is_constructor ? 1 : 0;
    bool concerns_arrays = false, is_complete = true;
    std::string list;
    py::ref cause;
    for (std::size_t i = 0; i < count; ++i) {
        std::vector<PyObject*> values(known[i].size(), nullptr);
        refusal why{place(given, known[i], values.data(), skipped), {}};
        if (why.text.empty()) why = why_not_values(notes, known[i], values.data(), known[i]);
        if (PyErr_Occurred() != nullptr) return true;  // Ctrl-C meanwhile: that is what is to be told
        concerns_arrays = concerns_arrays || is_any(known[i], is_ours);
        if (count == 1) return raise_for_one(listed.function, std::move(why));
        is_complete = is_complete && !why.text.empty();
        const std::string_view signature = listed.signatures[i];
        const bool is_nameless = signature.starts_with('(');  // pybind11's are
        if (why.text.empty()) why.text = "the arguments do not fit";
        append(list,
               {"\n    ", i + 1, ". ", is_nameless ? listed.function : "", signature, "\n       ", why.text});
        if (!cause) cause = std::move(why.cause);
    }
    // Of overloads without arrays only their number and names are known: that is all, or it is the binder's.
    if (!concerns_arrays && !is_complete) return false;
    raise_refusal(sentence({listed.function, "(): no overload takes these arguments:", list}),
                  std::move(cause));
    return true;
}

}  // namespace tenon::bind
