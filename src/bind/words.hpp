// src/bind/words.hpp: why an object does not fit a parameter: noted while it is loaded, and put into one
// sentence, with the way out, if somebody raises.
//
// Notes belong to the call that is under way on the thread, if that one looks at them at its end
// (call_frame); else there is room for one, the reason why the only overload of a function does not take its
// arguments.
#pragma once

#include <tenon/bind/call.hpp>
#include <tenon/bind/value.hpp>
#include "../py/export/all.hpp"

namespace tenon::bind {

// --- notes ------------------------------------------------------------------------------------------------

/// An axis of an argument, counted from 0, whose extent has a name.
struct related_axis {
    std::string_view name = {};
    std::int64_t extent = 0;
    unsigned argument = 0;
    std::size_t axis = 0;
};

/// One refusal. Dropping it may run code of others.
struct note {
    note* next = nullptr;
    const parameter_type* type = nullptr;
    const parameter_spec* spec = nullptr;
    py::ref object = {};           ///< what was refused: held, since an item of a list may be nobody else's
    py::ref exception = {};        ///< that its import was refused by; if none, it speaks no protocol, or
    const char* number = nullptr;  ///< it is a number, which cannot be taken for this reason
    bool is_array = false;  ///< it is an array, and not one that is asked for, as the others say from here on
    error fault = {};
    bool relaxed = false;  ///< element type and order would be converted: something else is at fault
    bool read_only = false;
    tenon::dtype dtype = {};
    tenon::device device = {};
    axes shape = {}, strides = {};
    related_axis related = {};  ///< if it has a name: the one that is of another extent than the one at fault
};
using note_ptr = std::unique_ptr<note>;

/// Null when there is no memory for it: then nobody is told.
[[nodiscard]] inline note_ptr note_of(PyObject* obj, const parameter_spec& spec) noexcept {
    return note_ptr(new (std::nothrow) note{.spec = &spec, .object = py::ref::borrow(obj)});
}

/// The notes of the call under way on this thread.
[[nodiscard]] TENON_PRIVATE inline call_notes& notes_here() noexcept {
    static thread_local constinit call_notes here;
    return here;
}

/// The place in a list of what was noted of an object for a parameter, or its end.
[[nodiscard]] inline note** find_note(note*& first, const parameter_type& type, PyObject* obj) noexcept {
    note** at = &first;
    while (*at != nullptr && ((*at)->type != &type || (*at)->object.get() != obj)) at = &(*at)->next;
    return at;
}
/// Takes it out.
[[nodiscard]] inline note_ptr take_note(note*& first, const parameter_type& type, PyObject* obj) noexcept {
    note** const at = find_note(first, type, obj);
    note_ptr taken(*at);
    if (taken) *at = std::exchange(taken->next, nullptr);
    return taken;
}

/// Drops all the notes of a list, which may run code of others: nobody finds them any more.
inline void drop_notes(note* first) noexcept {
    while (first != nullptr) {
        const note_ptr dropped(first);
        first = first->next;
    }
}

/// Notes it in the place of what was noted of the same object for the same parameter.
inline void add_note(note_ptr made, const parameter_type& type) noexcept {
    if (!made) return;
    made->type = &type;
    call_notes& here = notes_here();
    note_ptr before;
    if (here.calls == 0)
        drop_notes(std::exchange(here.first, nullptr));
    else
        before = take_note(here.first, type, made->object.get());
    made->next = here.first;
    here.first = made.release();
}

// --- words ------------------------------------------------------------------------------------------------

/// The text of an object, or `otherwise`. An exception is left only if it ends the call.
[[nodiscard]] inline std::string text_or(const char* otherwise, const py::ref& obj) {
    const char* const text = obj && PyUnicode_Check(obj.get()) ? PyUnicode_AsUTF8(obj.get()) : nullptr;
    std::string out = text != nullptr ? text : otherwise;
    (void)py::forget_answer();
    return out;
}

/// "numpy.ndarray", "list": the type as Python shows it. An exception is left only if it ends the call.
[[nodiscard]] inline std::string type_name(PyObject* obj) {
    const py::ref type = py::class_of(obj);
    std::string full = py::as_type(type)->tp_name;  // a copy: what is asked may give it another
    if (full.find('.') != std::string::npos || (py::as_type(type)->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0)
        return full;
    const std::string module = text_or("", py::ref::take(py::call::attr(type.get(), "__module__")));
    return module.empty() || module == "builtins" ? full : sentence({module, ".", full});
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
    return text_or("an exception that cannot be shown", py::ref::take(py::call::str(exception)));
}

/// "float32[*] or float64[*]".
[[nodiscard]] inline std::string words_of(const parameter_type& type) {
    if (type.kind == parameter_kind::foreign) return "anything else";
    std::string out;
    for (unsigned i = 0; i < type.count; ++i) {
        if (i != 0) out += " or ";
        out += type.specs != nullptr ? type.specs[i]->words : words_of(*type.parts[i]);
    }
    if (type.accepts_none) out += " or None";
    return out;
}

/// "10, 3".
[[nodiscard]] inline std::string listed(const axes& numbers) {
    std::string out;
    for (const std::int64_t n : numbers.values()) append(out, {out.empty() ? "" : ", ", n});
    return out;
}

/// "float64[10, 3] with strides (3, 1), writable, on cpu (numpy.ndarray)".
[[nodiscard]] inline std::string what_came(const note& n) {
    std::string out = sentence({name(n.dtype), "[", listed(n.shape), "]"});
    const std::size_t ndim = n.strides.size();
    if (ndim > 0) append(out, {" with strides (", listed(n.strides), ndim == 1 ? ",)" : ")"});
    append(out, {n.read_only ? ", read-only" : ", writable", ", on ", name(n.device), " (",
                 type_name(n.object.get()), ")"});
    return out;
}

/// What is wrong with the argument, by the field that `check` found at fault; and what it should become, for
/// where its library has no word of its own for that.
struct verdict {
    std::string complaint, advice;
};
[[nodiscard]] inline verdict verdict_of(const error& e, const request& wanted, const std::string& array) {
    const std::string_view field = e.field;
    if (field == "dtype")
        return {"has the wrong dtype", sentence({"convert it to ", name(wanted.type.value_or(dtype{}))})};
    if (field == "ndim") return {"has the wrong number of axes", "reshape it"};
    if (field == "shape")
        return {sentence({"has the wrong extent on axis ", e.axis}), "pass one of that shape"};
    if (field == "device") {
        return {"is on the wrong device",
                wanted.kind > abi::device_code::cpu ? "move it to that device" : "move it to the CPU"};
    }
    if (field == "flags") return {"is read-only", "pass a writable copy"};
    if (field == "data") return {"is not aligned", sentence({"try tenon.asdlpack(", array, ", copy=True)"})};
    if (field != "strides") return {"does not fit", "pass a writable copy"};
    if (wanted.order == memory_order::any) return {"has elements that share memory", "pass a writable copy"};
    return {"has the wrong memory order",
            wanted.order == memory_order::f ? "make it column-major" : "make it row-major"};
}

/// What helps an array that does not fit.
[[nodiscard]] inline std::string advice(const note& n, const request& wanted, const std::string& name,
                                        const std::string& plain) {
    // A conversion would drop the imaginary part without a word: whoever means it says so.
    const bool has_imaginary = std::string_view(n.fault.field) == "dtype" && n.dtype.is_complex() &&
                               wanted.type && !wanted.type->is_complex();
    const std::string array = sentence({name, has_imaginary ? ".real" : ""});
    const bool is_real_part = has_imaginary && wanted.type->code == abi::type_code::float_ &&
                              n.dtype.bits == 2U * wanted.type->bits;
    const std::string way = is_real_part ? array : py::remedy_for(n.object.get(), array, wanted, n.fault);
    return way.empty() ? plain : sentence({"try ", way});
}

/// A sentence, and the exception it has the reason from, if any.
struct refusal {
    std::string text;  ///< empty when nothing speaks against the object
    py::ref cause = {};
};

/// The name of a parameter, or what the binders call one without: "arg0", `self` not counted.
[[nodiscard]] inline std::string name_of(std::span<const parameter> parameters, std::size_t i) {
    if (parameters[i].name != nullptr) return parameters[i].name;
    const bool has_self = parameters[0].name != nullptr && parameters[0].name == std::string_view("self");
    return sentence({"arg", i - (has_self ? 1U : 0U)});
}

/// What a sentence is about.
struct subject {
    std::string who;                          ///< what it begins with: "argument 'xs', item 0"
    std::string name;                         ///< what the advice calls the array: "xs[0]"
    std::span<const parameter> parameters{};  ///< those of the function

    /// How a sentence begins that goes on with what is wrong.
    [[nodiscard]] std::string beginning() const { return sentence({who, name.ends_with(']') ? ", " : " "}); }
    [[nodiscard]] subject item(const std::string& where) const {
        return {sentence({who, ", item ", where}), sentence({name, "[", where, "]"}), parameters};
    }
};

/// The element type that something of type `from` should become: itself if it will do, or the first that has
/// all its values, or else that lacks no more than digits, or else the one for its real part, or else the
/// first. Nothing where any will do.
[[nodiscard]] inline std::optional<dtype> wanted_type(dtype from, const request& wanted) noexcept {
    if (wanted.type || wanted.types.empty()) return wanted.type;
    if (is_among(from, wanted.types)) return from;
    for (const bool narrowing : {false, true})
        for (const dtype to : wanted.types)
            if (can_convert(from, to, narrowing)) return to;
    if (from.code == abi::type_code::complex)
        return wanted_type({abi::type_code::float_, static_cast<std::uint8_t>(from.bits / 2U)}, wanted);
    return wanted.types.front();
}
/// The same for what has none.
[[nodiscard]] inline std::optional<dtype> wanted_type(const request& wanted) noexcept {
    return wanted.type || wanted.types.empty() ? wanted.type : wanted.types.front();
}

/// What no conversion changes of what is asked: all but element type and order.
[[nodiscard]] inline request without_conversion(request wanted) noexcept {
    wanted.type.reset();
    wanted.types = {};
    wanted.order = memory_order::any;
    return wanted;
}

/// " (n = 3, as argument 'x' has on axis 0)": what an extent must be that has a name.
[[nodiscard]] inline std::string words_of(const related_axis& other, const subject& about) {
    std::string who;
    if (other.argument < about.parameters.size())
        who = sentence({"argument ", quoted(name_of(about.parameters, other.argument))});
    if (who == about.who || who.empty()) who = "it";
    return sentence({" (", other.name, " = ", other.extent, ", as ", who, " has on axis ", other.axis, ")"});
}

/// A note in words.
[[nodiscard]] inline refusal in_words(const note& n, const subject& about) {
    refusal out;
    request wanted = n.relaxed ? without_conversion(n.spec->wanted) : n.spec->wanted;
    const bool is_of_set = !wanted.types.empty();
    wanted.type = n.is_array ? wanted_type(n.dtype, wanted) : wanted_type(wanted);
    parameter_type asked = *n.type;
    asked.accepts_none = false;
    const auto begin = [&](const std::string& problem) {
        out.text = sentence({about.beginning(), problem, ": expected ", words_of(asked)});
    };
    if (n.exception) {
        begin("was refused");
        append(out.text, {", got ", type_name(n.object.get()), ": ", text_of_exception(n.exception.get())});
        out.cause = py::ref::borrow(n.exception.get());
    } else if (n.number != nullptr) {
        begin("is not taken");
        append(out.text, {", got ", type_name(n.object.get()), ": ", n.number});
    } else if (!n.is_array) {
        begin("is not an array");
        append(out.text, {", got ", type_name(n.object.get()), "; try numpy.asarray(", about.name});
        if (wanted.type) append(out.text, {", '", tenon::name(*wanted.type), "'"});
        out.text += ')';
    } else {
        const std::string_view field = n.fault.field;
        const verdict found = verdict_of(n.fault, wanted, about.name);
        begin(found.complaint);
        if (field == "device" && wanted.space == memory_space::host && wanted.kind < 0)
            out.text += n.spec->converting != conversions::none ? ", in host memory" : " in host memory";
        if (!n.related.name.empty()) out.text += words_of(n.related, about);
        append(out.text, {", got ", what_came(n)});
        if (field == "data") {
            const std::uint32_t least = is_of_set ? n.dtype.alignment() : 1U;
            append(out.text,
                   {" at ", n.fault.got, " bytes past a multiple of ", std::max(least, wanted.alignment)});
        }
        append(out.text, {"; ", advice(n, wanted, about.name, found.advice)});
    }
    // What helps is another array: written to, and dropped with the call, it would help nobody.
    const std::string_view fault = n.is_array ? n.fault.field : "";
    if (!n.exception && n.number == nullptr && wanted.writable && fault != "shape" && fault != "ndim")
        out.text += ", and keep that: it is written to";
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

    /// Why `obj`, which stands for a parameter of this type, does not fit, as far as that was noted. An
    /// exception is left pending, and no text, when one has come up that ends the call.
    [[nodiscard]] refusal why_not(PyObject* obj, const parameter_type& type, const subject& about) {
        if (type.kind == parameter_kind::foreign || (obj == Py_None && type.accepts_none)) return {};
        if (type.kind == parameter_kind::one_of) return why_not_one_of(obj, type, about);
        if (type.parts != nullptr) return why_not_container(obj, type, about);
        if (obj == Py_None)
            return {sentence({about.beginning(), "is None: expected ", words_of(type), "; pass an array"})};
        const note* const noted = *find_note(notes_, type, obj);
        refusal out = noted != nullptr ? in_words(*noted, about) : refusal();
        if (consumes_) const note_ptr told = take_note(notes_, type, obj);
        return out;
    }

private:
    /// What speaks against a list, a tuple or a dict, or the first of its items that something speaks
    /// against.
    [[nodiscard]] refusal why_not_container(PyObject* obj, const parameter_type& type, const subject& about) {
        const bool is_tuple = type.kind == parameter_kind::tuple;
        const bool is_mapping = type.kind == parameter_kind::mapping;
        // What is asked may change it: what stands in it now, in tuples, which nobody empties.
        const py::ref pairs = py::ref::take(is_mapping && PyDict_Check(obj) ? PyDict_Items(obj) : nullptr);
        const py::ref items = !is_mapping ? items_of(obj) : pairs ? items_of(pairs.get()) : py::ref();
        if (!items) {
            if (!py::forget_answer()) return {};
            return {sentence({about.who, " is not a ", is_mapping ? "dict" : "list",
                              " of arrays: expected each to be ", words_of(*type.parts[0]), ", got ",
                              type_name(obj)})};
        }
        const Py_ssize_t count = PyTuple_GET_SIZE(items.get());
        if (is_tuple && count != type.count) {
            return {
                sentence({about.who, " has the wrong length: expected ", type.count, " items, got ", count})};
        }
        for (Py_ssize_t i = 0; i < count; ++i) {
            PyObject* item = PyTuple_GET_ITEM(items.get(), i);
            std::string where = sentence({i});
            if (is_mapping) {
                PyObject* const key = PyTuple_GET_ITEM(item, 0);
                const char* const text = PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : nullptr;
                PyErr_Clear();
                if (text == nullptr)
                    return {sentence({about.who, " has a key that is no text: got ", type_name(key)})};
                where = quoted(text);
                item = PyTuple_GET_ITEM(item, 1);
            }
            refusal out = why_not(item, *type.parts[is_tuple ? i : 0], about.item(where));
            if (!out.text.empty() || PyErr_Occurred() != nullptr) return out;
        }
        // An item that was noted, of a container that makes its items anew whenever it is asked for them.
        for (const note* n = notes_; n != nullptr; n = n->next)
            for (unsigned i = 0; i < type.count; ++i)
                if (n->type == type.parts[i])
                    return in_words(*n, {sentence({about.who, ", an item"}), sentence({about.name, "[...]"}),
                                         about.parameters});
        return {};
    }
    /// What speaks against the first of several kinds of parameter that the object may have been meant for,
    /// as long as nobody else's is among them.
    [[nodiscard]] refusal why_not_one_of(PyObject* obj, const parameter_type& type, const subject& about) {
        const bool is_container = PyList_Check(obj) || PyTuple_Check(obj) || PyDict_Check(obj);
        refusal first;
        for (unsigned i = 0; i < type.count; ++i) {
            const parameter_type& part = *type.parts[i];
            if (part.kind == parameter_kind::foreign) return {};
            const bool wants_container = part.specs == nullptr;
            if (wants_container != is_container || !first.text.empty()) continue;
            first = why_not(obj, part, about);
            if (PyErr_Occurred() != nullptr) return {};
        }
        return first;
    }

    note* notes_;
    bool consumes_;
};

}  // namespace tenon::bind
