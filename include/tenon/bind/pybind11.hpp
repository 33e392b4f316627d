// tenon/bind/pybind11.hpp: arrays and tensors as parameters and results of functions bound by pybind11.
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/pybind11.h>
#if PYBIND11_VERSION_MAJOR < 3
#error "tenon/bind/pybind11.hpp needs pybind11 3.0 or later"
#endif

#include <tenon/detail/config.hpp>  // first: flags that cannot work are said in few lines

#include <tenon/bind/call.hpp>
#include <tenon/bind/slot.hpp>

namespace tenon::bind::detail {

namespace pyb = ::pybind11::detail;

/// What signatures say: of a parameter the constraint, of a result what it is; its library is the caller's.
/// `name` has both, for pybind11 to choose; `taken` what a parameter is, which pybind11 would not choose for
/// one that must not be converted.
template <class P>
struct pybind11_annotation {
    static constexpr std::string_view at = "@", in = annotation_in<P>, out = annotation_out<P>;
    static constexpr auto taken = joined<pyb::descr, in>();
    static constexpr auto name = joined<pyb::descr, at, in, at, out, at>();
};
template <class P>
struct pybind11_annotation<std::optional<P>> {
    static constexpr auto taken = pybind11_annotation<P>::taken + pyb::const_name(" | None");
};
template <class First, class... Rest>
struct pybind11_annotation<std::variant<First, Rest...>> {
    static constexpr auto taken = (pybind11_annotation<First>::taken + ... +
                                   (pyb::const_name(" | ") + pybind11_annotation<Rest>::taken));
};

/// A Python exception passes as it is out of functions that take no arrays, too: those of a class that keeps
/// some, say. pybind11 would put one of its own before it. It has nothing that runs when a function is
/// defined, so this is done when the module is loaded, as Python loads one: with the GIL.
inline bool let_errors_pass() noexcept try {
    if (Py_IsInitialized() == 0 || PyGILState_Check() == 0) return false;
    pybind11::register_local_exception_translator([](std::exception_ptr thrown) {
        try {
            if (thrown) std::rethrow_exception(std::move(thrown));
        } catch (const py::python_error& e) {
            py::detail::raise_again(e);
        }
    });
    return true;
} catch (...) {
    PyErr_Clear();
    return false;
}
TENON_PRIVATE inline const bool errors_pass = let_errors_pass();

/// What came of an argument, as pybind11's casters say it.
[[nodiscard]] inline bool is_loaded(loading answer) {
    if (answer == loading::raised) [[unlikely]]
        throw pybind11::error_already_set();
    return answer == loading::done;
}

/// Room for a parameter that is lent to the function for the length of the call.
template <class Arg>
struct lent : slot<bare<Arg>> {
    static constexpr auto name = pybind11_annotation<bare<Arg>>::taken;
    lent() noexcept {}  // NOLINT(modernize-use-equals-default): as in slot
    bool load(pybind11::handle src, bool convert) {
        return is_loaded(slot<bare<Arg>>::load(src.ptr(), convert));
    }
    [[nodiscard]] decltype(auto) pass() { return bind::pass<Arg>(*this); }
};
/// Room for another one, which is pybind11's own business; and whether loading it took more than a look.
template <class Arg>
class TENON_PRIVATE watched {
    using T = std::remove_cvref_t<Arg>;
    static constexpr bool takes_any =
        is_one_of<T, pybind11::object, pybind11::handle, pybind11::args, pybind11::kwargs>;
    static constexpr bool reads_plain_values = std::is_arithmetic_v<T> || std::is_same_v<T, std::string>;

public:
    static constexpr auto name = pyb::make_caster<Arg>::name;
    bool load(pybind11::handle src, bool convert) {
        if constexpr (reads_plain_values) ran_code_ = !is_plain_value(src.ptr());
        return caster_.load(src, convert);
    }
    [[nodiscard]] bool ran_code() const noexcept { return !takes_any && ran_code_; }
    [[nodiscard]] decltype(auto) pass() { return pyb::cast_op<Arg>(std::move(caster_)); }

private:
    pyb::make_caster<Arg> caster_;
    bool ran_code_ = true;
};
template <class Arg>
using room_for = std::conditional_t<is_slotted<std::remove_cvref_t<Arg>>, lent<Arg>, watched<Arg>>;

/// An argument on its way through pybind11's own functions: to move an array would be to keep it.
template <class Arg>
using carried = std::conditional_t<is_slotted<Arg>, passing<bare<Arg>>, Arg>;
/// A member function of `Object`'s, to which arrays are passed on as they come.
template <class Object, class Method, class Return, class... Args>
struct method_call {
    Method method;
    method_call(Method f) noexcept : method(f) {}  // NOLINT(google-explicit-constructor): pybind11 casts so
    Return operator()(Object* self, carried<Args>... args) const {
        return (self->*method)(static_cast<carried<Args>&&>(args)...);
    }
};

/// A result, or the pending exception: pybind11 would put one of its own before it.
[[nodiscard]] inline pybind11::handle or_throw(PyObject* made) {
    if (made == nullptr) throw pybind11::error_already_set();
    return made;
}

/// The C function behind a function object of pybind11's, or null.
[[nodiscard]] inline PyMethodDef* definition_of(PyObject* function) noexcept {
    if (function != nullptr && PyInstanceMethod_Check(function) != 0)
        function = PyInstanceMethod_Function(function);
    if (function == nullptr || !PyCFunction_Check(function)) return nullptr;
    // Made by pybind11, and so not a constant: what it is bound to is the record of overloads.
    PyObject* const self = PyCFunction_GET_SELF(function);
    const std::string_view made_by = self != nullptr ? Py_TYPE(self)->tp_name : "";
    if (made_by.find("pybind11") == std::string_view::npos) return nullptr;
    return reinterpret_cast<PyCFunctionObject*>(function)->m_ml;
}

/// The parameters of an overload, which has `types` if they are known.
[[nodiscard]] inline overload parameters_of(const pyb::function_record& function,
                                            const parameter_type* const* types) {
    overload all(function.nargs);
    std::size_t named = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        parameter& p = all[i];
        if (types != nullptr) p.type = types[i];
        const bool is_last = i + 1 == all.size(), is_behind_named = i == function.nargs_pos;
        p.stars = function.has_kwargs && is_last ? 2 : function.has_args && is_behind_named ? 1 : 0;
        p.is_keyword_only = i >= function.nargs_pos;
        if (p.stars != 0) continue;
        if (named < function.args.size()) {
            p.name = function.args[named].name;
            p.has_default = static_cast<bool>(function.args[named].value);
        } else if (i == 0 && function.is_method) {
            p.name = "self";
        } else if (i == 1 && all.size() == 2 && (function.name == nullptr || *function.name == '\0')) {
            p.name = "value";  // what a property is set to
        }
        ++named;
    }
    return all;
}

/// What is known of the function whose record of overloads is its `self`.
[[nodiscard]] inline std::string list_overloads(PyObject* self, std::vector<overload>& out) {
    const pyb::function_record* const first = pyb::function_record_ptr_from_PyObject(self);
    for (const pyb::function_record* f = first; f != nullptr; f = f->next)
        add_overload(out, parameters_of(*f, types_of_overload(f)));
    return first != nullptr && first->name != nullptr ? first->name : "";
}

/// What an argument's caster refused. The function object is made to explain it, if it does not yet; and if
/// it has no other overload, that is done here and now.
///
/// pybind11 has nothing that runs when a function is defined, so this is the first time that a function is
/// known. `explain_overloads` does it before.
TENON_COLD inline bool refuse(const pyb::function_call& call, const parameter_type* const* types) {
    const pyb::function_record& function = call.func;
    PyMethodDef* definition = function.def;  // of the first overload
    if (definition == nullptr && function.scope && function.name != nullptr) {
        const py::ref found = py::ref::take(attribute_of(function.scope.ptr(), function.name));
        if (!found) PyErr_Clear();
        definition = definition_of(found.get());
    }
    const bool is_alone = function.next == nullptr && function.def != nullptr && !function.is_operator;
    remember_types(&function, types);
    if (definition == nullptr || !hook_definition(*definition, &list_overloads) || !is_alone) {
        forget_notes();  // unless this very call is hooked, and has use for them
        return false;
    }
    std::vector<PyObject*> values;
    values.reserve(call.args.size());
    for (std::size_t i = 0; i < call.args.size(); ++i) values.push_back(call.args[i].ptr());
    if (function.is_new_style_constructor) values[0] = call.init_self.ptr();
    const overload all = parameters_of(function, types);
    if (all.size() == values.size() && raise_noted(function.name, all, values.data(), all))
        throw pybind11::error_already_set();
    return false;
}

/// Says in the pending exception which argument it is about.
TENON_COLD inline void name_argument(const py::python_error& e, const pyb::function_record& function,
                                     const parameter_type* const* types, std::span<const loaded> arguments) {
    bind::name_argument(e, function.name, parameters_of(function, types), arguments.data(),
                        static_cast<unsigned>(arguments.size()));
}

}  // namespace tenon::bind::detail

namespace tenon {

namespace bind::detail {

/// The module is a submodule of the other, and not one that it has imported.
[[nodiscard]] inline bool is_submodule(PyObject* module, PyObject* of) noexcept {
    const char* const outer = PyModule_Check(of) ? PyModule_GetName(of) : nullptr;
    const char* const inner = outer != nullptr && PyModule_Check(module) ? PyModule_GetName(module) : nullptr;
    if (inner == nullptr) return (PyErr_Clear(), false);
    const std::string_view full = inner, prefix = outer;
    return full.size() > prefix.size() && full.starts_with(prefix) && full[prefix.size()] == '.';
}

inline void hook_members(PyObject* scope, std::vector<PyObject*>& seen) {
    seen.push_back(scope);
    const auto members = pybind11::reinterpret_steal<pybind11::object>(attribute_of(scope, "__dict__"));
    if (!members) throw pybind11::error_already_set();
    const pybind11::dict copy(members);
    for (const auto& [name, member] : copy) {
        PyObject* const object = member.ptr();
        if (PyMethodDef* const definition = definition_of(object)) {
            hook_definition(*definition, &list_overloads);
            continue;
        }
        const bool is_class = PyType_Check(object) && pybind11::detail::get_type_info(
                                                          reinterpret_cast<PyTypeObject*>(object)) != nullptr;
        bool is_new = true;
        for (PyObject* const one : seen) is_new = is_new && one != object;
        if (is_new && (is_class || is_submodule(object, scope))) hook_members(object, seen);
    }
}

}  // namespace bind::detail

/// Makes every function of a module, its classes and theirs list the reasons when no overload takes its
/// arguments. Called at the end of a module it holds from the first call on; without it, a function with
/// several overloads does so from its second refusal on. A function with one needs nothing.
inline void explain_overloads(const pybind11::handle& scope) {
    std::vector<PyObject*> seen;
    bind::detail::hook_members(scope.ptr(), seen);
}

}  // namespace tenon

namespace pybind11::detail {

#if __has_include(<pybind11/detail/function_ref.h>)  // since pybind11 3.1

/// A function, called by a pointer to it, to which arrays are passed on as they come.
template <typename Return, typename... Params>
    requires(tenon::bind::mentions_arrays<std::remove_cvref_t<Params>> || ...)
class function_ref<Return(Params...)> {
public:
    template <typename Callable>
    explicit function_ref(Callable& f) noexcept
        : function_(const_cast<void*>(static_cast<const void*>(&f))), call_(&call<Callable>) {}
    Return operator()(tenon::bind::detail::carried<Params>&&... params) const {
        return call_(function_, static_cast<tenon::bind::detail::carried<Params>&&>(params)...);
    }

private:
    template <typename Callable>
    static Return call(void* f, tenon::bind::detail::carried<Params>&&... params) {
        return (*static_cast<Callable*>(f))(static_cast<tenon::bind::detail::carried<Params>&&>(params)...);
    }

    void* function_;
    Return (*call_)(void*, tenon::bind::detail::carried<Params>&&...);
};

template <typename Derived, typename Return, typename Class, typename... Args>
    requires(tenon::bind::is_slotted<Args> || ...)
struct rebind_member_ptr<Derived, Return (Class::*)(Args...)> {
    using type = tenon::bind::detail::method_call<Derived, Return (Derived::*)(Args...), Return, Args...>;
    using source_class = Class;
};
template <typename Derived, typename Return, typename Class, typename... Args>
    requires(tenon::bind::is_slotted<Args> || ...)
struct rebind_member_ptr<Derived, Return (Class::*)(Args...) const> {
    using type =
        tenon::bind::detail::method_call<const Derived, Return (Derived::*)(Args...) const, Return, Args...>;
    using source_class = Class;
};

#endif

/// Loads the arguments of functions that take arrays: those are lent, the others are pybind11's own business.
template <typename... Args>
    requires(tenon::bind::mentions_arrays<std::remove_cvref_t<Args>> || ...)
class argument_loader<Args...> {
    using indices = std::index_sequence_for<Args...>;
    template <typename Arg, typename Base>
    static constexpr bool is = is_same_or_base_of<Base, intrinsic_t<Arg>>::value;
    /// What pybind11 makes of *args and **kwargs, whatever the others are.
    using others = argument_loader<std::conditional_t<is<Args, args> || is<Args, kwargs>, Args, int>...>;

public:
    static constexpr bool has_kwargs = others::has_kwargs;
    static constexpr int args_pos = others::args_pos;
    static constexpr auto arg_names = concat(type_descr(tenon::bind::detail::room_for<Args>::name)...);

    bool load_args(function_call& call) {
        function_ = &call.func;
        if constexpr ((tenon::bind::contains_arrays<std::remove_cvref_t<Args>> || ...)) {
            // Of alternatives, one may refuse an item, and another take it: that is kept for nobody.
            if (!tenon::bind::is_call_noted()) {
                const tenon::bind::call_frame notes;
                return load_noted(call);
            }
        }
        return load_noted(call);
    }

    template <typename Return, typename Guard, typename Func>
    decltype(auto) call(Func&& f) && {
        [[maybe_unused]] const tenon::bind::refuse_borrowed<std::remove_cvref_t<Return>> checked;
        if constexpr (std::is_void_v<Return>) {
            run<Return, Guard>(f, indices{});
            return void_type();
        } else {
            return run<Return, Guard>(f, indices{});
        }
    }

private:
    bool load_noted(function_call& call) {
        std::size_t next = 0;
        const auto load = [&](auto& room) {
            const std::size_t i = next++;
            return room.load(call.args[i], call.args_convert[i]);
        };
        if (!std::apply([&](auto&... rooms) { return (load(rooms) && ...); }, rooms_))
            return tenon::bind::detail::refuse(call, tenon::bind::types_of<Args...>);
        const int unfit =
            std::apply([](auto&... rooms) { return tenon::bind::settle_together(rooms...); }, rooms_);
        if (unfit >= 0) return tenon::bind::detail::refuse(call, tenon::bind::types_of<Args...>);
        if (unfit == tenon::bind::has_raised) throw error_already_set();
        return true;
    }
    template <typename Return, typename Guard, typename Func, std::size_t... I>
    auto run(Func& f, std::index_sequence<I...>)
        -> std::conditional_t<tenon::bind::is_array<Return>, tenon::bind::returned<Return>, Return> {
        const auto call = [&]() -> Return { return f(std::get<I>(rooms_).pass()...); };
        try {
            if constexpr (tenon::bind::is_array<Return>) {
                return tenon::bind::call_for_array<Return, Guard>(call, std::get<I>(rooms_)...);
            } else {
                [[maybe_unused]] Guard guard{};
                return call();
            }
        } catch (const tenon::py::python_error& e) {  // the guard, which may have let go of the GIL, is gone
            const tenon::bind::loaded all[] = {tenon::bind::loaded_in(std::get<I>(rooms_))...};
            tenon::bind::detail::name_argument(e, *function_, tenon::bind::types_of<Args...>, all);
            throw error_already_set();
        }
    }

    std::tuple<tenon::bind::detail::room_for<Args>...> rooms_;
    const function_record* function_ = nullptr;
};

/// A result; and an array or a tensor in a list, a tuple or a dict.
template <tenon::bind::item P>
class type_caster<P> : public tenon::bind::kept_item<P> {
public:
    static constexpr auto name = tenon::bind::detail::pybind11_annotation<P>::name;
    template <typename T_>
    using cast_op_type = movable_cast_op_type<T_>;

    bool load(handle src, bool convert) {
        return tenon::bind::detail::is_loaded(tenon::bind::kept_item<P>::load(src.ptr(), convert));
    }
    template <typename T>
    static handle cast(T&& value, return_value_policy, handle) {
        return tenon::bind::detail::or_throw(tenon::bind::to_python<P>(std::forward<T>(value)));
    }
    static handle cast(tenon::bind::returned<P> made, return_value_policy, handle) {
        return tenon::bind::detail::or_throw(made.object);
    }
};

/// What `tensor::own` gives, as a result: an error is raised.
template <>
class type_caster<tenon::result<tenon::tensor>> : public type_caster<tenon::tensor> {};

/// A result that names its library.
template <tenon::bind::named_result R>
class type_caster<R> {
public:
    static constexpr auto name = tenon::bind::joined<descr, R::annotation>();
    template <typename T_>
    using cast_op_type = movable_cast_op_type<T_>;

    bool load(handle, bool) { return (tenon::bind::refuse_parameter<R>{}, false); }
    template <typename T>
    static handle cast(T&& value, return_value_policy, handle) {
        return tenon::bind::detail::or_throw(tenon::bind::named_to_python(std::forward<T>(value)));
    }
    explicit operator R*();
    explicit operator R&();
    explicit operator R&&();
};

/// A view, which does not compile.
template <tenon::bind::borrowed_view V>
class type_caster<V> : tenon::bind::refuse_borrowed<V> {
public:
    static constexpr auto name = const_name("");
    template <typename T_>
    using cast_op_type = movable_cast_op_type<T_>;
    bool load(handle, bool);
    template <typename T>
    static handle cast(T&&, return_value_policy, handle);
    explicit operator V*();
    explicit operator V&();
    explicit operator V&&();
};

}  // namespace pybind11::detail

#include <tenon/detail/python_engine.hpp>  // last: with TENON_HEADER_ONLY, what stands behind it
