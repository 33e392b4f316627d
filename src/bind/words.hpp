// src/bind/words.hpp: why an object does not fit a parameter, in one sentence with the way out.
#pragma once

#include <tenon/bind/parameter.hpp>
#include <tenon/bind/value.hpp>
#include "../py/export/all.hpp"
#include "record.hpp"

namespace tenon::bind {

/// A sentence, and the exception it has the reason from, if any.
struct refusal {
    std::string text;  ///< empty when nothing speaks against the object
    py::ref cause;
};

/// "numpy.ndarray", "list": the type as Python shows it. An exception is left only if it ends the call.
[[nodiscard]] inline std::string type_name(PyObject* obj) {
    const py::ref type = py::class_of(obj);
    std::string full = py::as_type(type)->tp_name;  // a copy: what is asked may give it another
    if (full.find('.') != std::string::npos || (py::as_type(type)->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0)
        return full;
    const py::ref module = py::ref::take(py::call::attr(type.get(), "__module__"));
    const char* const text =
        module && PyUnicode_Check(module.get()) ? PyUnicode_AsUTF8(module.get()) : nullptr;
    (void)py::forget_answer();
    const std::string prefix = text != nullptr ? text : "";
    return prefix.empty() || prefix == "builtins" ? full : prefix + "." + full;
}

/// "'x'": text as Python shows it, on one line, and not to its first NUL alone.
[[nodiscard]] inline std::string quoted(std::string_view text) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string shown = "'";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\\' || c == '\'')
            shown += {'\\', c};
        else if (c == '\0')
            shown += "\\0";
        else if (byte < 0x20)
            shown += {'\\', 'x', digits[byte >> 4U], digits[byte & 15U]};
        else
            shown += c;
    }
    return shown + "'";
}

/// What an exception says, without its type. An exception is left only if it ends the call.
[[nodiscard]] inline std::string text_of_exception(PyObject* exception) {
    const py::ref text = py::ref::take(py::call::str(exception));
    const char* const utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    std::string out = utf8 != nullptr ? utf8 : "an exception that cannot be shown";
    (void)py::forget_answer();
    return out;
}

/// "float32[*] or float64[*]".
[[nodiscard]] inline std::string words_of(const parameter_type& type) {
    if (type.kind == parameter_kind::foreign) return "anything else";
    std::string out;
    for (unsigned i = 0; i < type.count; ++i) {
        if (i != 0) out += " or ";
        out += type.specs != nullptr ? type.specs[i]->words : words_of(*type.parts[i]);
    }
    return type.accepts_none ? out + " or None" : out;
}

/// "10, 3".
[[nodiscard]] inline std::string listed(extents numbers) {
    std::string out;
    for (const std::int64_t n : numbers) out += (out.empty() ? "" : ", ") + std::to_string(n);
    return out;
}

/// "float64[10, 3] with strides (3, 1), writable, on cpu (numpy.ndarray)".
[[nodiscard]] inline std::string what_came(const note& n) {
    std::string out = name(n.dtype) + "[" + listed(n.shape()) + "]";
    if (n.ndim > 0) out += " with strides (" + listed(n.strides()) + (n.ndim == 1 ? ",)" : ")");
    return out + (n.read_only ? ", read-only" : ", writable") + ", on " + name(n.device) + " (" +
           type_name(n.object.get()) + ")";
}

/// What is wrong with the argument, by the field that `check` found at fault.
[[nodiscard]] inline std::string complaint(const error& e, const request& wanted) {
    const std::string_view field = e.field;
    if (field == "dtype") return "has the wrong dtype";
    if (field == "ndim") return "has the wrong number of axes";
    if (field == "shape") return "has the wrong extent on axis " + std::to_string(e.axis);
    if (field == "device") return "is on the wrong device";
    if (field == "flags") return "is read-only";
    if (field == "data") return "is not aligned";
    if (field == "strides" && wanted.order == memory_order::any) return "has elements that share memory";
    if (field == "strides") return "has the wrong memory order";
    return "does not fit";
}

/// Without a library's own word for it: what the array should become.
[[nodiscard]] inline std::string plain_advice(const error& e, const request& wanted, std::string_view array) {
    const std::string_view field = e.field;
    if (field == "dtype" && wanted.type) return "convert it to " + name(*wanted.type);
    if (field == "ndim") return "reshape it";
    if (field == "shape") return "pass one of that shape";
    if (field == "device")
        return wanted.kind > abi::device_code::cpu ? "move it to that device" : "move it to the CPU";
    if (field == "strides" && wanted.order != memory_order::any)
        return wanted.order == memory_order::c ? "make it row-major" : "make it column-major";
    if (field == "data") return "try tenon.asdlpack(" + std::string(array) + ", copy=True)";
    return "pass a writable copy";
}

/// What helps an array that does not fit.
[[nodiscard]] inline std::string advice(const note& n, const request& wanted, const std::string& name) {
    const std::string_view field = n.fault.field;
    // A conversion would drop the imaginary part without a word: whoever means it says so.
    const bool has_imaginary =
        field == "dtype" && n.dtype.is_complex() && wanted.type && !wanted.type->is_complex();
    const std::string array = name + (has_imaginary ? ".real" : "");
    const bool is_real_part = has_imaginary && wanted.type->code == abi::type_code::float_ &&
                              n.dtype.bits == 2U * wanted.type->bits;
    const std::string way = is_real_part ? array : py::remedy_for(n.object.get(), array, wanted, n.fault);
    return way.empty() ? plain_advice(n.fault, wanted, name) : "try " + way;
}

/// How a sentence on an argument begins, or one on an item: "argument 'xs', item 0, ".
[[nodiscard]] inline std::string sentence_of(const std::string& who, const std::string& name) {
    return who + (name.ends_with(']') ? ", " : " ");
}

/// A note in words.
[[nodiscard]] inline refusal in_words(const note& n, const parameter_type& type, const std::string& who,
                                      const std::string& name) {
    refusal out;
    request wanted = n.spec->wanted;
    if (n.relaxed) {
        wanted.type.reset();
        wanted.order = memory_order::any;
    }
    parameter_type asked = type;
    asked.accepts_none = false;
    const auto begin = [&](const std::string& problem) {
        return sentence_of(who, name) + problem + ": expected " + words_of(asked);
    };
    if (n.kind == reason::no_array) {
        out.text = begin("is not an array") + ", got " + type_name(n.object.get()) + "; try numpy.asarray(" +
                   name + (wanted.type ? ", '" + tenon::name(*wanted.type) + "')" : ")");
    } else if (n.kind == reason::raised) {
        out.text = begin("was refused") + ", got " + type_name(n.object.get()) + ": " +
                   text_of_exception(n.exception.get());
        out.cause = py::ref::borrow(n.exception.get());
    } else {
        const std::string_view field = n.fault.field;
        out.text = begin(complaint(n.fault, wanted));
        if (field == "device" && wanted.space == memory_space::host)
            out.text += n.spec->converting != conversions::none ? ", in host memory" : " in host memory";
        out.text += ", got " + what_came(n);
        if (field == "data") {
            out.text += " at " + std::to_string(n.fault.got) + " bytes past a multiple of " +
                        std::to_string(wanted.alignment);
        }
        out.text += "; " + advice(n, wanted, name);
    }
    if (PyErr_Occurred() != nullptr) return {};
    return out;
}

/// Finds the reasons among the notes, which are its own meanwhile: putting them into words runs code of
/// others, and what that is refused is none of them.
class explainer {
public:
    /// `consumes`: what has been told is dropped, since the notes are not only of the call that is explained.
    explicit explainer(bool consumes) noexcept
        : notes_(std::exchange(notes_here().first, nullptr)), consumes_(consumes) {}
    ~explainer() {
        call_notes& here = notes_here();
        if (here.calls == 0) {
            const py::error_guard aside;
            drop_notes(notes_);
        } else if (notes_ != nullptr) {
            note* last = notes_;
            while (last->next != nullptr) last = last->next;
            last->next = std::exchange(here.first, notes_);
        }
    }
    explainer(const explainer&) = delete;
    explainer& operator=(const explainer&) = delete;

    /// Why `obj`, which stands for a parameter of this type, does not fit, as far as that was noted. `who` is
    /// what the sentence begins with ("argument 'x'"), `name` what the advice calls the array. An exception
    /// is left pending, and no text, when one has come up that ends the call.
    [[nodiscard]] refusal why_not(PyObject* obj, const parameter_type& type, const std::string& who,
                                  const std::string& name) {
        using kind = parameter_kind;
        if (type.kind == kind::foreign || (obj == Py_None && type.accepts_none)) return {};
        if (type.kind == kind::one_of) return why_not_one_of(obj, type, who, name);
        if (type.kind == kind::mapping) return why_not_mapping(obj, type, who, name);
        if (type.kind == kind::list || type.kind == kind::tuple)
            return why_not_sequence(obj, type, who, name);
        if (obj == Py_None)
            return {sentence_of(who, name) + "is None: expected " + words_of(type) + "; pass an array", {}};
        refusal out;
        const note* noted = notes_;
        while (noted != nullptr && (noted->type != &type || noted->object.get() != obj)) noted = noted->next;
        if (noted != nullptr) out = in_words(*noted, type, who, name);
        if (consumes_) const note_ptr told = take_note(notes_, type, obj);
        return out;
    }

private:
    [[nodiscard]] refusal why_not_item(PyObject* item, const parameter_type& type, const std::string& who,
                                       const std::string& name, const std::string& where) {
        return why_not(item, type, who + ", item " + where, name + "[" + where + "]");
    }
    /// An item that was noted, of a container that makes its items anew whenever it is asked for them.
    [[nodiscard]] refusal why_not_any(const parameter_type& container, const std::string& who,
                                      const std::string& name) const {
        for (const note* n = notes_; n != nullptr; n = n->next)
            for (unsigned i = 0; i < container.count; ++i)
                if (n->type == container.parts[i])
                    return in_words(*n, *n->type, who + ", an item", name + "[...]");
        return {};
    }
    [[nodiscard]] static refusal why_not_container(PyObject* obj, const parameter_type& type,
                                                   const std::string& who) {
        return {who + " is not a " + (type.kind == parameter_kind::mapping ? "dict" : "list") +
                    " of arrays: expected each to be " + words_of(*type.parts[0]) + ", got " + type_name(obj),
                {}};
    }
    [[nodiscard]] refusal why_not_mapping(PyObject* obj, const parameter_type& type, const std::string& who,
                                          const std::string& name) {
        if (!PyDict_Check(obj)) return why_not_container(obj, type, who);
        PyObject *key = nullptr, *value = nullptr;
        const py::ref copy = py::ref::take(PyDict_Copy(obj));  // what is asked may change the dict
        for (Py_ssize_t at = 0; copy && PyDict_Next(copy.get(), &at, &key, &value) != 0;) {
            // Whoever asks the collector finds the copy, too, and may empty it.
            const py::ref held_key = py::ref::borrow(key), held_value = py::ref::borrow(value);
            const char* const text = PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : nullptr;
            if (text == nullptr) {
                PyErr_Clear();
                return {who + " has a key that is no text: got " + type_name(key), {}};
            }
            refusal out = why_not_item(value, *type.parts[0], who, name, quoted(text));
            if (!out.text.empty() || PyErr_Occurred() != nullptr) return out;
        }
        return why_not_any(type, who, name);
    }
    [[nodiscard]] refusal why_not_sequence(PyObject* obj, const parameter_type& type, const std::string& who,
                                           const std::string& name) {
        const py::ref items = items_of(obj);  // what is asked may change the list
        if (!items) return py::forget_answer() ? why_not_container(obj, type, who) : refusal{};
        const Py_ssize_t count = PyTuple_GET_SIZE(items.get());
        const bool is_tuple = type.kind == parameter_kind::tuple;
        if (is_tuple && count != type.count) {
            return {who + " has the wrong length: expected " + std::to_string(type.count) + " items, got " +
                        std::to_string(count),
                    {}};
        }
        for (Py_ssize_t i = 0; i < count; ++i) {
            const parameter_type& part = *type.parts[is_tuple ? i : 0];
            refusal out = why_not_item(PyTuple_GET_ITEM(items.get(), i), part, who, name, std::to_string(i));
            if (!out.text.empty() || PyErr_Occurred() != nullptr) return out;
        }
        return why_not_any(type, who, name);
    }
    /// What speaks against the first of several kinds of parameter that the object may have been meant for,
    /// as long as nobody else's is among them.
    [[nodiscard]] refusal why_not_one_of(PyObject* obj, const parameter_type& type, const std::string& who,
                                         const std::string& name) {
        const bool is_container = PyList_Check(obj) || PyTuple_Check(obj) || PyDict_Check(obj);
        refusal first;
        for (unsigned i = 0; i < type.count; ++i) {
            const parameter_type& part = *type.parts[i];
            if (part.kind == parameter_kind::foreign) return {};
            const bool wants_container =
                part.kind != parameter_kind::array && part.kind != parameter_kind::tensor;
            if (wants_container != is_container || !first.text.empty()) continue;
            first = why_not(obj, part, who, name);
            if (PyErr_Occurred() != nullptr) return {};
        }
        return first;
    }

    note* notes_;
    bool consumes_;
};

}  // namespace tenon::bind
