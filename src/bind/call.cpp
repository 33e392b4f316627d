// src/bind/call.cpp: the notes of a call, and a binder's function object that is made to explain by them what
// it refuses; what it takes costs a jump more.
#include <tenon/bind/call.hpp>
#include "../py/export/all.hpp"
#include "overloads.hpp"

namespace tenon::bind {

TENON_INLINE call_frame::call_frame() noexcept : outer_(notes_here()) {
    notes_here() = {nullptr, nullptr, outer_.calls + 1};
}

TENON_INLINE call_frame::~call_frame() {
    call_notes& here = notes_here();
    note* const dropped = here.first;
    here = outer_;
    if (dropped == nullptr) [[likely]]
        return;
    const py::error_guard aside;
    drop_notes(dropped);
}

TENON_INLINE PyObject* call_frame::end(PyObject* result) noexcept {
    PyObject* const waiting = std::exchange(notes_here().put_off, nullptr);
    if (waiting == nullptr) [[likely]]
        return result;
    PyErr_Clear();
    py::call::drop(result);
    py::restore_exception(py::ref::take(waiting));
    return nullptr;
}

TENON_INLINE bool is_call_noted() noexcept { return notes_here().calls != 0; }

TENON_INLINE bool is_put_off() noexcept { return notes_here().put_off != nullptr; }

TENON_INLINE void put_off() noexcept {
    call_notes& here = notes_here();
    if (here.calls == 0)
        py::call::write_unraisable();
    else if (here.put_off != nullptr)
        PyErr_Clear();  // the first one stands
    else
        here.put_off = py::pending_exception().release();
}

TENON_INLINE void forget_notes() noexcept {
    call_notes& here = notes_here();
    if (here.calls != 0 || here.first == nullptr) return;
    const py::error_guard aside;
    drop_notes(std::exchange(here.first, nullptr));
}

TENON_INLINE void add_overload(std::vector<overload>& all, overload&& added) {
    all.push_back(std::move(added));
}

TENON_INLINE bool raise_noted(const char* function, std::span<const parameter> parameters,
                              PyObject* const* values, std::span<const parameter> all) noexcept try {
    explainer notes(true);
    refusal why = why_not_values(notes, parameters, values, all);
    return PyErr_Occurred() != nullptr || raise_for_one(function != nullptr ? function : "", std::move(why));
} catch (...) {
    py::raise_caught();
    return true;
}

/// Functions that stand in front of a binder's own, one for each of those: what they are called with goes to
/// `Around`, the binder's function first. A binder has a handful for all the functions it makes, so a few
/// places do; when there are more, the rest keep their own messages.
template <auto Around, std::size_t Places, class Original>
class stand_ins;
template <auto Around, std::size_t Places, class... Args>
class stand_ins<Around, Places, PyObject* (*)(Args...)> {
    using function = PyObject* (*)(Args...);

public:
    /// What to call instead of `original`: `original` itself when it is a stand-in already.
    [[nodiscard]] static function in_front_of(function original) noexcept {
        if (original == nullptr || is_one(original)) return original;
        for (std::size_t i = 0; i < Places; ++i) {
            function none = nullptr;
            if (originals[i].compare_exchange_strong(none, original) || none == original) return all[i];
        }
        return original;
    }
    [[nodiscard]] static bool is_one(function f) noexcept {
        return is_any(all, [&](function one) { return one == f; });
    }

private:
    template <std::size_t I>
    static PyObject* call(Args... args) {
        return Around(originals[I].load(std::memory_order_relaxed), args...);
    }
    TENON_PRIVATE static inline std::atomic<function> originals[Places]{};
    TENON_PRIVATE static inline constexpr auto all = []<std::size_t... I>(std::index_sequence<I...>) {
        return std::array<function, Places>{&call<I>...};
    }(std::make_index_sequence<Places>{});
};

struct named_function {
    std::string name;
    std::vector<std::string> texts;  ///< names of parameters: the binder's own may be gone
    overload parameters;
};

/// What is known of functions, for as long as the process lives: nanobind's by the objects they are, which
/// live as long as the interpreter; of pybind11's the types of each overload, by its record. A list: it is
/// looked at when a function is defined, and when one refuses.
struct function_registry {
    struct entry {
        const void* of = nullptr;
        std::vector<overload> overloads = {};
        const parameter_type* const* types = nullptr;
    };
    std::mutex mutex;
    std::vector<entry> known;
    std::vector<std::unique_ptr<const named_function>> functions;

    /// Locked by the caller.
    [[nodiscard]] entry& at(const void* asked) {
        for (entry& one : known)
            if (one.of == asked) return one;
        return known.emplace_back(entry{asked});
    }
    /// A copy of a part of what is known of a function or a record.
    template <class Part>
    [[nodiscard]] Part find(const void* asked, Part entry::* part) {
        const std::scoped_lock lock(mutex);
        for (const entry& one : known)
            if (one.of == asked) return one.*part;
        return Part();
    }
    /// Adds an overload to those of `before`, of which `made` has `total` in all.
    void add(PyObject* made, PyObject* before, std::size_t total, const overload& parameters) {
        const std::scoped_lock lock(mutex);
        std::vector<overload> known_before;
        if (total > 1) known_before = std::exchange(at(before).overloads, {});
        // First those that were defined where these headers had not been included, and are nobody's to
        // explain.
        std::vector<overload> all(total > known_before.size() ? total - 1 - known_before.size() : 0);
        for (overload& one : known_before) add_overload(all, std::move(one));
        add_overload(all, overload(parameters));
        at(made).overloads = std::move(all);
    }
    [[nodiscard]] TENON_PRIVATE static function_registry& here() {
        static auto* const all = new function_registry;  // never destroyed: modules may go later
        return *all;
    }
};

TENON_INLINE const named_function* remember_function(const char* name,
                                                     std::span<const parameter> parameters) noexcept try {
    auto made = std::make_unique<named_function>();
    made->name = name;
    made->parameters.assign(parameters.begin(), parameters.end());
    made->texts.reserve(parameters.size());  // they stay where they are
    for (parameter& p : made->parameters)
        if (p.name != nullptr) p.name = made->texts.emplace_back(p.name).c_str();
    function_registry& here = function_registry::here();
    const std::scoped_lock lock(here.mutex);
    return here.functions.emplace_back(std::move(made)).get();
} catch (...) {
    return nullptr;  // without memory for it, it keeps its own messages
}

TENON_INLINE void name_argument(const py::python_error& e, const char* function,
                                std::span<const parameter> parameters, const loaded* arguments,
                                unsigned count) noexcept try {
    py::detail::raise_again(e);
    if (!e.error()) return;
    error why = *e.error();
    const unsigned at = argument_about(why, arguments, count);
    if (at >= parameters.size()) return;
    const py::ref unnamed = py::pending_exception();  // aside: asking for names may run code
    const bool is_nameless = function == nullptr || *function == '\0';
    std::string text = sentence({is_nameless ? "" : function, is_nameless ? "" : "(): ", "argument ",
                                 quoted(name_of(parameters, at))});
    why.which = 0;  // the name says it
    if (why.code == errc::not_taken) {
        text += " has the wrong dtype: ";
        why.field = "";
    } else {
        text += ": ";
    }
    append(text, {why.message(), " (", type_name(arguments[at].ours->source()), ")"});
    if (PyErr_Occurred() == nullptr) py::raise(why.code, text);
} catch (...) {
    py::raise_caught();
}

TENON_INLINE void name_argument(const py::python_error& e, const named_function* function,
                                const loaded* arguments, unsigned count) noexcept {
    if (function == nullptr) return py::detail::raise_again(e);
    name_argument(e, function->name.c_str(), function->parameters, arguments, count);
}

TENON_INLINE void remember_types(const void* record, const parameter_type* const* types) noexcept try {
    function_registry& here = function_registry::here();
    const std::scoped_lock lock(here.mutex);
    here.at(record).types = types;
} catch (...) {  // NOLINT(bugprone-empty-catch): without memory for it, its reasons are left out
}

TENON_INLINE const parameter_type* const* types_of_overload(const void* record) noexcept {
    return function_registry::here().find(record, &function_registry::entry::types);
}

/// How pybind11's functions are listed: the same for all of them.
TENON_PRIVATE inline std::atomic<overload_lister> definition_lister{nullptr};

/// Lists the overloads of a function of either binder's, and gives its name.
[[nodiscard]] inline std::string list_known(PyObject* self, std::vector<overload>& out) {
    out = function_registry::here().find(self, &function_registry::entry::overloads);
    const overload_lister list_definition = definition_lister.load();
    if (out.empty() && list_definition != nullptr) return list_definition(self, out);
    const py::ref name = py::ref::take(py::call::attr(self, "__name__"));
    const char* const text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
    PyErr_Clear();
    return text != nullptr ? text : "";
}

/// Gives the pending TypeError of a binder the reasons why no overload of `function` took the arguments. What
/// is not such an exception, concerns no array, or is of another function, stays as it is: the function may
/// have run, and called that. `consumes` as an explainer does.
TENON_COLD inline void explain_call(PyObject* function, const call_arguments& given, bool consumes) noexcept
    try {
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) return;
    py::ref original = py::pending_exception();
    if (!original) return;
    const std::string message = text_of_exception(original.get());
    if (PyErr_Occurred() != nullptr) return;
    const listed_overloads listed(message);
    if (!listed.signatures.empty()) {
        std::vector<overload> known;
        const std::string name = list_known(function, known);
        explainer notes(consumes);
        if (listed.function == name && raise_listed(notes, listed, given, known)) return;
    }
    py::restore_exception(std::move(original));
} catch (...) {
    py::raise_caught();
}

struct no_frame {
    [[nodiscard]] static PyObject* end(PyObject* result) noexcept { return result; }
};
/// Around what is called as by vectorcall. Without a call's own notes there is one overload to explain.
template <bool KeepsNotes>
TENON_HOT inline PyObject* explained_vectorcall(vectorcallfunc original, PyObject* self,
                                                PyObject* const* args, std::size_t nargsf, PyObject* names) {
    // The highest bits are flags, CPython's and the binder's.
    const auto count = static_cast<Py_ssize_t>(nargsf & (~std::size_t{0} >> 4U));
    std::conditional_t<KeepsNotes, call_frame, no_frame> notes;
    PyObject* const result = notes.end(original(self, args, nargsf, names));
    if (result == nullptr) [[unlikely]] {
        explain_call(self, {args, count, names}, !KeepsNotes);
        forget_notes();
    }
    return result;
}
template <bool KeepsNotes>
using function_stand_ins = stand_ins<&explained_vectorcall<KeepsNotes>, 6, vectorcallfunc>;

/// The same of what is called with a tuple and a dict.
TENON_COLD inline void explain_slow_call(PyObject* self, PyObject* args, PyObject* keywords) noexcept try {
    PyObject** const first = PySequence_Fast_ITEMS(args);
    std::vector<PyObject*> values(first, first + PyTuple_GET_SIZE(args));
    py::ref names;
    if (keywords != nullptr) {
        const py::error_guard aside;
        names = py::ref::take(foreign_code([&] { return PySequence_Tuple(keywords); }));
        if (!names) return;
        PyObject *key = nullptr, *value = nullptr;
        for (Py_ssize_t at = 0; PyDict_Next(keywords, &at, &key, &value) != 0;) values.push_back(value);
    }
    explain_call(self, {values.data(), PyTuple_GET_SIZE(args), names.get()}, false);
} catch (...) {
    py::raise_caught();
}
TENON_HOT inline PyObject* explained_slow_call(PyCFunctionWithKeywords original, PyObject* self,
                                               PyObject* args, PyObject* keywords) {
    call_frame notes;
    PyObject* const result = notes.end(original(self, args, keywords));
    if (result == nullptr) [[unlikely]]
        explain_slow_call(self, args, keywords);
    return result;
}
/// pybind11 calls all of its functions by one, up to 3.0.
using slow_stand_ins = stand_ins<&explained_slow_call, 2, PyCFunctionWithKeywords>;

[[nodiscard]] inline hooking hooking_of(PyObject* callable) noexcept {
    const auto function = PyVectorcall_Function(callable);
    if (function_stand_ins<true>::is_one(function)) return hooking::keeps_notes;
    return function_stand_ins<false>::is_one(function) ? hooking::explains : hooking::none;
}

TENON_INLINE void hook_function(PyObject* made, PyObject* before, const named_function* known,
                                hooking how) noexcept try {
    if (known == nullptr) return;
    const Py_ssize_t offset = Py_TYPE(made)->tp_vectorcall_offset;
    if (offset <= 0 || (Py_TYPE(made)->tp_flags & Py_TPFLAGS_HAVE_VECTORCALL) == 0) return;
    // nanobind's function has as many items as overloads.
    const std::size_t total = Py_TYPE(made)->tp_itemsize > 0 ? static_cast<std::size_t>(Py_SIZE(made)) : 1;
    function_registry::here().add(made, before, total, known->parameters);
    if (before != nullptr) how = std::max(how, hooking_of(before));
    // Several overloads may refuse before one takes, or none.
    if (how == hooking::explains && total > 1) how = hooking::keeps_notes;
    auto& place = *reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(made) + offset);
    if (how == hooking::explains) place = function_stand_ins<false>::in_front_of(place);
    if (how == hooking::keeps_notes) place = function_stand_ins<true>::in_front_of(place);
} catch (...) {
    PyErr_Clear();  // without memory for it, it keeps its own messages
}

/// A stand-in takes the place of a definition's function. False when one is there already.
template <class StandIns, class Original>
[[nodiscard]] bool stand_before(PyMethodDef& definition) noexcept {
    const auto old = reinterpret_cast<Original>(reinterpret_cast<void (*)()>(definition.ml_meth));
    const Original made = StandIns::in_front_of(old);
    definition.ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(made));
    return made != old;
}

TENON_INLINE bool hook_definition(PyMethodDef& definition, overload_lister lister) noexcept {
    definition_lister.store(lister);
    constexpr int fast = METH_FASTCALL | METH_KEYWORDS;
    constexpr int slow = METH_VARARGS | METH_KEYWORDS;
    // The fast kind is called as by vectorcall, but for the sign of a number that is never negative.
    if ((definition.ml_flags & fast) == fast)
        return stand_before<function_stand_ins<true>, vectorcallfunc>(definition);
    if ((definition.ml_flags & slow) == slow)
        return stand_before<slow_stand_ins, PyCFunctionWithKeywords>(definition);
    return false;
}

TENON_INLINE int set_item(PyObject* dict, const char* key, PyObject* value) noexcept {
    return py::call::set_dict_item(dict, key, value);
}

TENON_INLINE PyObject* attribute_of(PyObject* obj, const char* name) noexcept {
    return py::call::attr(obj, name);
}

}  // namespace tenon::bind
