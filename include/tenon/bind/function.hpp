// tenon/bind/function.hpp: a C++ function as a method of a module written by hand, without a binder.
//
//     array<float, 1> scale(array<const float, 1> x, float s);
//     PyMethodDef methods[] = {py::function<&scale>("scale", {"x", {"s", 2.0}}), {}};
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <tenon/bind/explain.hpp>
#include <tenon/bind/request.hpp>
#include <tenon/bind/result.hpp>
#include <tenon/bind/slot.hpp>
#include <tenon/bind/value.hpp>
#include <tenon/detail/foreign_code.hpp>
#include <tenon/py/python.hpp>
#include <tenon/py/raise.hpp>

namespace tenon::py {

/// A parameter's name, and the value it has when the caller leaves it out: a number, a truth value, text, or
/// `nullptr` for None.
struct parameter {
    using default_value =
        std::variant<std::monostate, std::nullptr_t, bool, std::int64_t, std::uint64_t, double, const char*>;

    parameter(const char* n) noexcept : name(n) {}  // NOLINT(google-explicit-constructor)
    parameter(const char* n, std::nullptr_t) noexcept : name(n), value(nullptr) {}
    parameter(const char* n, const char* text) noexcept : name(n), value(text) {}
    template <class V>
        requires std::is_arithmetic_v<V>
    parameter(const char* n, V number) noexcept : name(n) {
        if constexpr (std::is_same_v<V, bool>)
            value = number;
        else if constexpr (std::is_unsigned_v<V>)
            value = static_cast<std::uint64_t>(number);
        else if constexpr (std::is_integral_v<V>)
            value = static_cast<std::int64_t>(number);
        else
            value = static_cast<double>(number);
    }

    [[nodiscard]] bool has_default() const noexcept { return value.index() != 0; }
    /// As Python writes it. Null with an exception set on failure.
    [[nodiscard]] ref default_object() const noexcept {
        return ref::take(std::visit(
            []<class V>(const V& v) -> PyObject* {
                if constexpr (std::is_same_v<V, bool>)
                    return PyBool_FromLong(v ? 1 : 0);
                else if constexpr (std::is_same_v<V, std::int64_t>)
                    return PyLong_FromLongLong(v);
                else if constexpr (std::is_same_v<V, std::uint64_t>)
                    return PyLong_FromUnsignedLongLong(v);
                else if constexpr (std::is_same_v<V, double>)
                    return PyFloat_FromDouble(v);
                else if constexpr (std::is_same_v<V, const char*>)
                    return PyUnicode_FromString(v);
                else
                    return ref::borrow(Py_None).release();
            },
            value));
    }

    const char* name;
    default_value value;
};

namespace detail {

/// What is known of a function beyond its C++ type.
struct function_record {
    std::string name;
    std::string doc;  ///< as CPython wants it: the bare signature, then the text
    std::vector<parameter> parameters;
};

/// Text as Python shows it, on one line.
[[nodiscard]] inline std::string quoted_text(std::string_view text) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string out = "'";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\\' || c == '\'')
            out += {'\\', c};
        else if (byte < 0x20)
            out += {'\\', 'x', digits[byte >> 4U], digits[byte & 15U]};
        else
            out += c;
    }
    return out + "'";
}

/// A default value as Python shows it.
[[nodiscard]] inline std::string shown(const parameter& p) {
    return std::visit(
        []<class V>(const V& v) -> std::string {
            if constexpr (std::is_same_v<V, bool>) {
                return v ? "True" : "False";
            } else if constexpr (std::is_integral_v<V>) {
                return std::to_string(v);
            } else if constexpr (std::is_same_v<V, double>) {
                char* const text = PyOS_double_to_string(v, 'r', 0, Py_DTSF_ADD_DOT_0, nullptr);
                std::string out = text != nullptr ? text : "...";
                PyMem_Free(text);
                return out;
            } else if constexpr (std::is_same_v<V, const char*>) {
                return quoted_text(v);
            } else {
                return "None";
            }
        },
        p.value);
}

/// Puts the arguments of a call in the places of the parameters: those that are missing are null, and have a
/// default. False with TypeError set.
TENON_COLD [[nodiscard]] inline bool place_arguments(const function_record& function,
                                                     const bind::call_arguments& given,
                                                     PyObject** out) noexcept try {
    const std::vector<parameter>& parameters = function.parameters;
    const auto count = static_cast<Py_ssize_t>(parameters.size());
    const auto fail = [&](const std::string& what) {
        PyErr_SetString(PyExc_TypeError, (function.name + "(): " + what).c_str());
        return false;
    };
    if (given.positional > count) {
        return fail(bind::detail::too_many(count, given.positional));
    }
    for (Py_ssize_t i = 0; i < count; ++i) out[i] = i < given.positional ? given.values[i] : nullptr;
    for (Py_ssize_t k = 0; k < given.keywords(); ++k) {
        const std::string_view name = given.keyword(k);
        Py_ssize_t at = 0;
        while (at < count && parameters[static_cast<std::size_t>(at)].name != name) ++at;
        if (at == count) return fail("has no argument " + bind::detail::quoted(name));
        if (out[at] != nullptr) return fail("got two values for argument '" + std::string(name) + "'");
        out[at] = given.values[given.positional + k];
    }
    for (Py_ssize_t i = 0; i < count; ++i) {
        const parameter& p = parameters[static_cast<std::size_t>(i)];
        if (out[i] == nullptr && !p.has_default())
            return fail("argument '" + std::string(p.name) + "' is missing");
    }
    return true;
} catch (...) {
    raise_caught();
    return false;
}

/// Raises TypeError for an argument that was refused: the reason if it is an array, else what it should be.
TENON_COLD inline void raise_refused(const function_record& function, const char* name,
                                     const std::string& annotation, PyObject* obj) noexcept try {
    const std::string signature = std::string("(") + name + ": " + annotation + ")";
    bind::refusal why = bind::detail::why_not_signature(signature, {&obj, 1, nullptr}, 0);
    if (PyErr_Occurred() != nullptr || bind::detail::raise_for_one(function.name, std::move(why))) return;
    const bool is_out_of_range =
        (annotation.starts_with("int") || annotation.starts_with("float")) && PyLong_CheckExact(obj);
    const std::string text = function.name + "(): argument '" + name + "' does not fit: expected " +
                             annotation + ", got " + bind::detail::type_name(obj) +
                             (is_out_of_range ? " out of its range" : "");
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_TypeError, text.c_str());
} catch (...) {
    raise_caught();
}

/// One registered function: `Tag` tells apart several that are made of one C++ function.
template <auto F, class Tag, class Signature>
class method;

template <auto F, class Tag, class Return, class... Args>
class method<F, Tag, Return (*)(Args...)> {
public:
    static constexpr std::size_t count = sizeof...(Args);

    [[nodiscard]] static PyMethodDef define(const char* name, std::span<const parameter> parameters,
                                            const char* doc) {
        function_record& made = record();
        made.name = name;
        made.parameters.assign(parameters.begin(), parameters.end());
        std::string bare, full;
        const std::string annotations[] = {bind::annotation_of<Args>()..., ""};
        for (std::size_t i = 0; i < count; ++i) {
            const parameter& p = made.parameters[i];
            bare += std::string(", ") + p.name + (p.has_default() ? "=" + shown(p) : "");
            full += std::string(i == 0 ? "" : ", ") + p.name + ": " + annotations[i] +
                    (p.has_default() ? " = " + shown(p) : "");
        }
        made.doc = made.name + "($module" + bare + ")\n--\n\n" + made.name + "(" + full + ") -> " +
                   bind::result_annotation_of<Return>();
        if (doc != nullptr && *doc != '\0') made.doc += std::string("\n\n") + doc;
        return {made.name.c_str(), reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call)),
                METH_FASTCALL | METH_KEYWORDS, made.doc.c_str()};
    }

private:
    static PyObject* call(PyObject*, PyObject* const* args, Py_ssize_t positional, PyObject* names) noexcept
        try {
        if (names == nullptr && positional == static_cast<Py_ssize_t>(count)) [[likely]]
            return run(args, std::index_sequence_for<Args...>{});
        const function_record& function = record();
        std::array<PyObject*, count + 1> placed{};
        if (!place_arguments(function, {args, positional, names}, placed.data())) return nullptr;
        std::array<ref, count + 1> made;
        for (std::size_t i = 0; i < count; ++i) {
            if (placed[i] != nullptr) continue;
            made[i] = function.parameters[i].default_object();
            placed[i] = made[i].get();
            if (placed[i] == nullptr) return nullptr;
        }
        return run(placed.data(), std::index_sequence_for<Args...>{});
    } catch (...) {
        raise_caught();
        return nullptr;
    }

    template <std::size_t... I>
    static PyObject* run([[maybe_unused]] PyObject* const* args, std::index_sequence<I...>) {
        std::tuple<bind::room_for<Args>...> rooms;
        if (!(load<Args>(std::get<I>(rooms), args[I], I) && ...) || !bind::settle_all(std::get<I>(rooms)...))
            [[unlikely]]
            return nullptr;
        if constexpr (std::is_void_v<Return>) {
            authors_code([&] { F(static_cast<Args&&>(std::get<I>(rooms).value())...); });
            return PyErr_Occurred() == nullptr ? ref::borrow(Py_None).release() : nullptr;
        } else {
            return bind::to_object(authors_code(
                [&]() -> Return { return F(static_cast<Args&&>(std::get<I>(rooms).value())...); }));
        }
    }
    template <class Arg>
    static bool load(bind::room_for<Arg>& room, PyObject* obj, std::size_t index) noexcept {
        const bind::loading answer = room.load(obj, true);
        if (answer == bind::loading::done) [[likely]]
            return true;
        if (answer == bind::loading::refused) {
            const function_record& function = record();
            raise_refused(function, function.parameters[index].name, bind::annotation_of<Arg>(), obj);
        }
        return false;
    }

    /// Made when it is first wanted, which is while other statics are being made.
    TENON_PRIVATE static function_record& record() noexcept {
        static function_record here;
        return here;
    }
};

/// The type of a function, or of a lambda without captures, as a pointer; that it never throws is no part of
/// it.
template <class Return, class... Args>
Return (*without_noexcept(Return (*)(Args...)))(Args...);
template <auto F, class Tag>
using method_of = method<F, Tag, decltype(without_noexcept(+F))>;

}  // namespace detail

/// The definition of a module's method that calls `F` with its arguments converted, for a table of methods or
/// `PyModule_AddFunctions`: a name for each parameter, with a default value if it has one. Arrays are
/// borrowed for the length of the call; a C++ exception becomes a Python one. To be called once at each place
/// where it stands, while the table is made.
template <auto F, class Tag = decltype([] {}), std::size_t Count>
[[nodiscard]] PyMethodDef function(const char* name, const parameter (&parameters)[Count],
                                   const char* doc = nullptr) {
    using made = detail::method_of<F, Tag>;
    static_assert(made::count == Count,
                  "tenon::py::function: give as many names as the function has parameters");
    return made::define(name, parameters, doc);
}
/// The same for a function without parameters.
template <auto F, class Tag = decltype([] {})>
    requires(detail::method_of<F, Tag>::count == 0)
[[nodiscard]] PyMethodDef function(const char* name, const char* doc = nullptr) {
    return detail::method_of<F, Tag>::define(name, {}, doc);
}

}  // namespace tenon::py
