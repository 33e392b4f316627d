// tenon/bind/pybind11.hpp: arrays and tensors as parameters and results of functions bound by pybind11.
#pragma once

#include <cstddef>
#include <optional>
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

#include <tenon/bind/call.hpp>
#include <tenon/bind/request.hpp>
#include <tenon/bind/slot.hpp>

namespace tenon::bind::detail {

namespace pyb = ::pybind11::detail;

/// What signatures say: of a parameter the constraint, of a result what it is; its library is the caller's.
/// `name` has both, for pybind11 to choose; `taken` what a parameter is, which pybind11 would not choose for
/// one that must not be converted.
template <class P>
struct pybind11_annotation;
template <class P>
    requires is_array<P>
struct pybind11_annotation<P> {
    static constexpr std::string_view open = "typing.Annotated[", like = "numpy.typing.ArrayLike, '",
                                      anything = "typing.Any, '", at = "@", close = "']",
                                      in = P::spelled.view(), out = P::spelled_result.view();
    static constexpr auto taken =
        joined<pyb::descr<open.size() + like.size() + in.size() + close.size()>>(open, like, in, close);
    static constexpr auto name =
        joined<pyb::descr<open.size() + like.size() + in.size() + anything.size() + out.size() +
                          3 * at.size() + close.size()>>(open, at, like, in, at, anything, out, at, close);
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
template <>
struct pybind11_annotation<tensor> {
    static constexpr auto taken = pyb::const_name("numpy.typing.ArrayLike");
    static constexpr auto name = pyb::const_name("@numpy.typing.ArrayLike@tenon.Tensor@");
};

/// What came of an argument, as pybind11's casters say it.
[[nodiscard]] inline bool is_loaded(loading answer) {
    if (answer == loading::raised) [[unlikely]]
        throw pybind11::error_already_set();
    return answer == loading::done;
}

/// A parameter that is lent to the function for the length of the call.
template <class P>
struct lent : slot<P> {
    static constexpr auto name = pybind11_annotation<P>::taken;
    lent() noexcept {}  // NOLINT(modernize-use-equals-default): as in slot
    bool load(pybind11::handle src, bool convert) { return is_loaded(slot<P>::load(src.ptr(), convert)); }
};

/// What is known of an argument after it was loaded: all of one that is lent; of the others, which are
/// pybind11's own business, whether that took more than a look.
template <class P>
[[nodiscard]] slot<P>& room_of(lent<P>& caster, pybind11::handle) noexcept {
    return caster;
}
template <class Caster>
[[nodiscard]] foreign_room room_of(Caster&, pybind11::handle) noexcept {
    return {true};
}
template <class T>
[[nodiscard]] foreign_room room_of(pyb::type_caster<T>&, pybind11::handle src) noexcept {
    constexpr bool reads_plain_values = std::is_arithmetic_v<T> || std::is_same_v<T, std::string>;
    constexpr bool takes_any = std::is_same_v<T, pybind11::object> || std::is_same_v<T, pybind11::handle> ||
                               std::is_same_v<T, pybind11::args> || std::is_same_v<T, pybind11::kwargs>;
    return {!takes_any && !(reads_plain_values && is_plain_value(src.ptr()))};
}

/// A result, or the pending exception: pybind11 would put one of its own before it.
[[nodiscard]] inline pybind11::handle or_throw(PyObject* made) {
    if (made == nullptr) throw pybind11::error_already_set();
    return made;
}

template <class Arg>
using caster_for = std::conditional_t<is_slotted<std::remove_cvref_t<Arg>>, lent<std::remove_cvref_t<Arg>>,
                                      pyb::make_caster<Arg>>;

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
        if (function.has_kwargs && i + 1 == all.size())
            p.stars = 2;
        else if (function.has_args && i == function.nargs_pos)
            p.stars = 1;
        p.is_keyword_only = i >= function.nargs_pos;
        if (p.stars != 0) continue;
        if (named < function.args.size()) {
            p.name = function.args[named].name;
            p.has_default = static_cast<bool>(function.args[named].value);
        } else if (i == 0 && function.is_method) {
            p.name = "self";
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
    if (all.size() == values.size() && raise_noted(function.name, all, values.data()))
        throw pybind11::error_already_set();
    return false;
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

/// Loads the arguments of functions that take arrays: those are lent, the others are pybind11's own business.
template <typename... Args>
    requires(tenon::bind::mentions_arrays<std::remove_cvref_t<Args>> || ...)
class argument_loader<Args...> {
    using indices = std::index_sequence_for<Args...>;
    template <typename Arg>
    using is_args = is_same_or_base_of<args, intrinsic_t<Arg>>;
    template <typename Arg>
    using is_kwargs = is_same_or_base_of<kwargs, intrinsic_t<Arg>>;
    static constexpr auto kwargs_pos = constexpr_last<is_kwargs, Args...>();
    static_assert(kwargs_pos == -1 || kwargs_pos == static_cast<int>(sizeof...(Args)) - 1,
                  "py::kwargs is only permitted as the last argument of a function");

public:
    static constexpr bool has_kwargs = kwargs_pos != -1;
    static constexpr int args_pos = constexpr_last<is_args, Args...>();
    static_assert(args_pos == -1 || args_pos == constexpr_first<is_args, Args...>(),
                  "py::args cannot be specified more than once");

    static constexpr auto arg_names = concat(type_descr(tenon::bind::detail::caster_for<Args>::name)...);

    bool load_args(function_call& call) {
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
        if constexpr (std::is_void_v<Return>) {
            run<Guard>(f, indices{});
            return void_type();
        } else {
            return static_cast<Return>(run<Guard>(f, indices{}));
        }
    }

private:
    bool load_noted(function_call& call) {
        if (!load_all(call, indices{}))
            return tenon::bind::detail::refuse(call, tenon::bind::types_of<Args...>);
        if (!settle_all(call, indices{})) throw error_already_set();
        return true;
    }
    template <std::size_t... I>
    bool load_all(function_call& call, std::index_sequence<I...>) {
        return (std::get<I>(casters_).load(call.args[I], call.args_convert[I]) && ...);
    }
    template <std::size_t... I>
    bool settle_all(function_call& call, std::index_sequence<I...>) {
        const auto all = [](auto&&... rooms) { return tenon::bind::settle_rooms(rooms...); };
        return all(tenon::bind::detail::room_of(std::get<I>(casters_), call.args[I])...);
    }
    template <typename Guard, typename Func, std::size_t... I>
    decltype(auto) run(Func& f, std::index_sequence<I...>) {
        try {
            [[maybe_unused]] Guard guard{};
            return f(pass<Args>(std::get<I>(casters_))...);
        } catch (const tenon::py::python_error&) {  // the guard, which may have let go of the GIL, is gone
            throw error_already_set();
        }
    }
    template <typename Arg, typename Caster>
    static decltype(auto) pass(Caster& caster) {
        if constexpr (tenon::bind::is_slotted<std::remove_cvref_t<Arg>>)
            return static_cast<Arg&&>(caster.value());
        else
            return cast_op<Arg>(std::move(caster));
    }

    std::tuple<tenon::bind::detail::caster_for<Args>...> casters_;
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
};

/// What `tensor::own` gives, as a result: an error is raised.
template <>
class type_caster<tenon::result<tenon::tensor>> {
public:
    static constexpr auto name = const_name("tenon.Tensor");
    static handle cast(tenon::result<tenon::tensor>&& t, return_value_policy, handle) {
        return tenon::bind::detail::or_throw(tenon::bind::to_python<tenon::tensor>(std::move(t)));
    }
};

}  // namespace pybind11::detail

#include <tenon/detail/python_engine.hpp>  // last: with TENON_HEADER_ONLY, what stands behind it
