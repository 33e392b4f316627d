// tenon/bind/nanobind.hpp: arrays and tensors as parameters and results of functions bound by nanobind.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/variant.h>
#if NB_VERSION_MAJOR < 2 || (NB_VERSION_MAJOR == 2 && NB_VERSION_MINOR < 11)
#error "tenon/bind/nanobind.hpp needs nanobind 2.11 or later"
#endif

#include <tenon/detail/config.hpp>  // first: flags that cannot work are said in few lines

#include <tenon/bind/call.hpp>
#include <tenon/bind/slot.hpp>

namespace tenon::bind {

/// What stands in a bound function's parameter list for an array, so that its caster can lend what a caster
/// for lists would have to keep: the place where the argument lies during the call.
template <class P>
struct direct {
    slot<P>* room;
};
/// What stands there for a number, which nanobind loads: whether that took more than a look.
template <class T>
struct watched {
    T value;
    bool ran_code;
};

template <class T>
inline constexpr bool is_watched = std::is_arithmetic_v<T> && !nanobind::detail::is_std_char_v<T>;
template <class Arg, class T = std::remove_cvref_t<Arg>>
using direct_parameter =
    std::conditional_t<is_slotted<T>, direct<T>, std::conditional_t<is_watched<T>, watched<T>, Arg>>;

/// What is known of an argument after it was loaded.
template <class Passed>
[[nodiscard]] decltype(auto) room_of(const Passed& passed) noexcept {
    if constexpr (is_a<Passed, direct>)
        return (*passed.room);
    else if constexpr (is_a<Passed, watched>)
        return foreign_room{passed.ran_code};
    else
        return foreign_room{true};
}

/// The argument as the function wants it: by value, by reference, to be moved from.
template <class Arg, class Passed>
[[nodiscard]] constexpr decltype(auto) pass_on(Passed&& passed) {
    if constexpr (is_a<std::remove_cvref_t<Passed>, direct>)
        return pass<Arg>(*passed.room);
    else if constexpr (is_a<std::remove_cvref_t<Passed>, watched>)
        return static_cast<Arg&&>(passed.value);
    else
        return static_cast<Arg&&>(passed);
}

/// What a call guard among the extras stands for: it is made in `lending`, after the last look at the
/// arguments, which needs the GIL; nanobind would make it before.
template <class Given>
using guard_of = typename std::conditional_t<std::is_void_v<Given>, nanobind::call_guard<>, Given>::type;
template <class Extra>
[[nodiscard]] const Extra& without_guard(const Extra& extra) noexcept {
    return extra;  // NOLINT(bugprone-return-const-ref-from-parameter): lives as long as the definition
}
template <class... Guards>
[[nodiscard]] nanobind::call_guard<> without_guard(const nanobind::call_guard<Guards...>&) noexcept {
    return {};
}

/// What stands for a result: an array becomes Python's before the arguments go.
template <class Return>
using handed_back = std::conditional_t<is_array<Return>, returned<Return>, Return>;
/// The function with arrays lent to it, and with what it leaves pending raised.
template <class Guard, class Return, class... Args, class Fn>
[[nodiscard]] auto lending(Fn&& fn, Return (*)(Args...), const named_function* function) {
    return [fn = std::forward<Fn>(fn), function](direct_parameter<Args>... args) -> handed_back<Return> {
        const auto settle = [](auto&&... rooms) { return settle_together(rooms...); };
        const int unfit = settle(room_of(args)...);
        if (unfit >= 0) [[unlikely]]
            throw nanobind::next_overload();
        if (unfit == has_raised) [[unlikely]]
            throw nanobind::python_error();
        const auto call = [&]() -> Return { return fn(pass_on<Args>(args)...); };
        try {
            if constexpr (is_array<Return>) {
                const auto hand_back = [&](auto&&... rooms) {
                    return call_for_array<Return, Guard>(call, rooms...);
                };
                return hand_back(room_of(args)...);
            } else {
                [[maybe_unused]] Guard guard{};
                return call();
            }
        } catch (const py::python_error& e) {  // the guard, which may have let go of the GIL, is gone
            const auto name = [&](auto&&... rooms) {
                const loaded all[] = {loaded_in(rooms)...};
                name_argument(e, function, all, sizeof...(Args));
            };
            name(room_of(args)...);
            throw nanobind::python_error();
        }
    };
}

template <class Signature>
inline constexpr bool takes_arrays = false;
template <class Return, class... Args>
inline constexpr bool takes_arrays<Return (*)(Args...)> = (mentions_arrays<std::remove_cvref_t<Args>> || ...);
/// What a function of such parameters needs: an array in a list is loaded where nothing may be thrown.
template <class... Args>
inline constexpr hooking needed_hooking =
    (contains_arrays<std::remove_cvref_t<Args>> || ...) ? hooking::keeps_notes
    : takes_arrays<void (*)(Args...)>                   ? hooking::explains
                                                        : hooking::none;

/// Whether what is said of an argument lets None in, by `.none()` or by a default that is None: in nanobind
/// 3, whose types say it, and in nanobind 2.
template <template <std::uint32_t, bool> class Arg, std::uint32_t Flags, bool Locked>
[[nodiscard]] bool lets_none_in(const Arg<Flags, Locked>&) noexcept {
    return (Flags & static_cast<std::uint32_t>(nanobind::detail::cast_flags::accepts_none)) != 0;
}
template <class Arg>
[[nodiscard]] bool lets_none_in(const Arg& arg) noexcept {
    if constexpr (requires { arg.value; })
        if (arg.value.is_none()) return true;
    return arg.none_;
}

/// Takes from an extra of the binder's what it says of the parameters from `next` to `end`.
template <class Extra>
[[nodiscard]] parameter* take_words(const Extra& extra, parameter* next, parameter* end) noexcept {
    if constexpr (std::is_same_v<Extra, nanobind::kw_only>) {
        for (parameter* p = next; p != end; ++p) p->is_keyword_only = true;
    } else if constexpr (requires { extra.name_, extra.signature_; }) {
        if (extra.name_ != nullptr) next->name = extra.name_;
        next->has_default = requires { extra.value; };
        next->accepts_none = lets_none_in(extra);
        ++next;
    }
    return next;
}
template <class Arg>
inline constexpr std::uint8_t stars_of = std::is_same_v<std::remove_cvref_t<Arg>, nanobind::args>     ? 1
                                         : std::is_same_v<std::remove_cvref_t<Arg>, nanobind::kwargs> ? 2
                                                                                                      : 0;

/// A Python exception passes as it is out of functions that take no arrays, too: those of a class that keeps
/// some, say. nanobind would replace it. Once for each interpreter, as it keeps its translators.
inline void let_errors_pass() {
    static constinit std::atomic<PyInterpreterState*> told{nullptr};
    PyInterpreterState* const here = PyInterpreterState_Get();
    if (told.exchange(here) == here) return;
    nanobind::register_exception_translator([](const std::exception_ptr& thrown, void*) {
        try {
            std::rethrow_exception(thrown);
        } catch (const py::python_error& e) {
            py::detail::raise_again(e);
        }
    });
}

/// The function object, which explains what it refuses if it, or `before`, which it overloads, takes arrays.
template <class Target, class Fn, class Return, class... Args, class... Extra>
[[nodiscard]] nanobind::object make_function(PyObject* before, const char* name, Fn&& fn,
                                             Return (*signature)(Args...), const Extra&... extra) {
    parameter all[sizeof...(Args) + 1] = {{nullptr, &type_of<Args>, stars_of<Args>}..., {}};
    [[maybe_unused]] parameter* next = all + (std::is_same_v<Extra, nanobind::is_method> || ... || false);
    if (next != all) all[0].name = "self";
    if (sizeof...(Args) == 2 && *name == '\0') all[1].name = "value";  // what a property is set to
    ((next = take_words(extra, next, all + sizeof...(Args))), ...);
    const named_function* const known = remember_function(name, {all, sizeof...(Args)});
    let_errors_pass();
    nanobind::object made;
    if constexpr (takes_arrays<Return (*)(Args...)>) {
        [[maybe_unused]] const refuse_borrowed<std::remove_cvref_t<Return>> checked;
        using guard = guard_of<typename nanobind::detail::func_extra_info<Extra...>::call_guard>;
        made = nanobind::cpp_function<Target>(lending<guard>(std::forward<Fn>(fn), signature, known),
                                              without_guard(extra)...);
    } else {
        made = nanobind::cpp_function<Target>(std::forward<Fn>(fn), extra...);
    }
    hook_function(made.ptr(), before, known, needed_hooking<Args...>);
    return made;
}

/// Defines a function in a scope, where it may overload another.
template <class Target, class Fn, class Signature, class... Extra>
void define(Fn&& fn, Signature signature, const nanobind::scope& scope, const nanobind::name& name,
            const Extra&... extra) {
    const py::ref before = py::ref::take(attribute_of(scope.value, name.value));
    if (!before) PyErr_Clear();
    (void)make_function<Target>(before.get(), name.value, std::forward<Fn>(fn), signature, scope, name,
                                extra...);
}

/// A member function, called with the object in front of its arguments.
template <class Object, class Method>
struct method_call {
    Method method;
    template <class... Args>
    decltype(auto) operator()(Object* self, Args&&... args) const {
        return (self->*method)(std::forward<Args>(args)...);
    }
};
/// The same as nanobind would have it, if no array has to be passed on as it comes.
template <class Object, class Return, class... Args, class Method>
[[nodiscard]] auto of_object(Method f, Return (*)(Object*, Args...)) {
    if constexpr (takes_arrays<Return (*)(Args...)>)
        return method_call<Object, Method>{f};
    else
        return [f](Object* self, Args... args) -> Return { return (self->*f)(std::forward<Args>(args)...); };
}
/// The member function as one of the object, a `Target` if one is named, and the arguments.
template <class Target, class Class>
using object_of = std::conditional_t<std::is_void_v<Target>, Class, Target>;
template <class Target, class Return, class Class, class... Args>
auto signature_with_object(Return (Class::*)(Args...)) -> Return (*)(object_of<Target, Class>*, Args...);
template <class Target, class Return, class Class, class... Args>
auto signature_with_object(Return (Class::*)(Args...) const)
    -> Return (*)(const object_of<Target, Class>*, Args...);
template <class Target, class Method>
using method_signature = decltype(signature_with_object<Target>(Method()));

template <class Fn>
using signature_of =
    typename nanobind::detail::analyze_method<decltype(&std::remove_reference_t<Fn>::operator())>::func*;

namespace detail {

/// What signatures and stubs say: of a parameter the constraint, of a result what it is; its library is the
/// caller's.
template <class P>
struct nanobind_annotation {
    static constexpr std::string_view at = "@", in = annotation_in<P>, out = annotation_out<P>;
    static constexpr auto name = joined<nanobind::detail::descr, at, in, at, out, at>();
};
template <class P>
struct nanobind_annotation<std::optional<P>> {
    static constexpr auto name = nanobind::detail::optional_name(nanobind_annotation<P>::name);
};
template <class... P>
struct nanobind_annotation<std::variant<P...>> {
    static constexpr auto name = nanobind::detail::union_name(nanobind_annotation<P>::name...);
};

}  // namespace detail
}  // namespace tenon::bind

namespace nanobind {

// `def` of modules and classes calls these by an unqualified name, so they are found in its place: they are
// the more specialised, since they say what the first two extras are.

template <typename Target = void, typename Return, typename... Args, typename... Extra>
void cpp_function_def(Return (*f)(Args...), const scope& s, const name& n, const Extra&... extra) {
    tenon::bind::define<Target>(f, f, s, n, extra...);
}
template <typename Target = void, typename Func, typename... Extra,
          detail::enable_if_t<detail::is_lambda_v<std::remove_reference_t<Func>>> = 0>
void cpp_function_def(Func&& f, const scope& s, const name& n, const Extra&... extra) {
    const tenon::bind::signature_of<Func> signature = nullptr;
    tenon::bind::define<Target>(std::forward<Func>(f), signature, s, n, extra...);
}
template <typename Target = void, typename Return, typename Class, typename... Args, typename... Extra>
void cpp_function_def(Return (Class::*f)(Args...), const scope& s, const name& n, const Extra&... extra) {
    const tenon::bind::method_signature<Target, decltype(f)> signature = nullptr;
    tenon::bind::define<Target>(tenon::bind::of_object(f, signature), signature, s, n, extra...);
}
template <typename Target = void, typename Return, typename Class, typename... Args, typename... Extra>
void cpp_function_def(Return (Class::*f)(Args...) const, const scope& s, const name& n,
                      const Extra&... extra) {
    const tenon::bind::method_signature<Target, decltype(f)> signature = nullptr;
    tenon::bind::define<Target>(tenon::bind::of_object(f, signature), signature, s, n, extra...);
}

// The same for what stands behind a property: a function without a name, which begins with the object. The
// empty docstring says nothing, but that this is not to come here again.

template <typename Target = void, typename Return, typename... Args, typename... Extra>
    requires tenon::bind::takes_arrays<Return (*)(Args...)>
object cpp_function(Return (*f)(Args...), const is_method& m, const Extra&... extra) {
    return tenon::bind::make_function<Target>(nullptr, "", f, f, "", m, extra...);
}
template <typename Target = void, typename Func, typename... Extra,
          detail::enable_if_t<detail::is_lambda_v<std::remove_reference_t<Func>>> = 0>
    requires tenon::bind::takes_arrays<tenon::bind::signature_of<Func>>
object cpp_function(Func&& f, const is_method& m, const Extra&... extra) {
    const tenon::bind::signature_of<Func> signature = nullptr;
    return tenon::bind::make_function<Target>(nullptr, "", std::forward<Func>(f), signature, "", m, extra...);
}
template <typename Target = void, typename Return, typename Class, typename... Args, typename... Extra>
    requires tenon::bind::takes_arrays<Return (*)(Args...)>
object cpp_function(Return (Class::*f)(Args...), const is_method& m, const Extra&... extra) {
    const tenon::bind::method_signature<Target, decltype(f)> signature = nullptr;
    return tenon::bind::make_function<Target>(nullptr, "", tenon::bind::of_object(f, signature), signature,
                                              "", m, extra...);
}
template <typename Target = void, typename Return, typename Class, typename... Args, typename... Extra>
    requires tenon::bind::takes_arrays<Return (*)(Args...)>
object cpp_function(Return (Class::*f)(Args...) const, const is_method& m, const Extra&... extra) {
    const tenon::bind::method_signature<Target, decltype(f)> signature = nullptr;
    return tenon::bind::make_function<Target>(nullptr, "", tenon::bind::of_object(f, signature), signature,
                                              "", m, extra...);
}

namespace detail {

template <typename P>
struct has_arg_defaults<tenon::bind::direct<std::optional<P>>> : std::true_type {};
template <typename P>
struct remove_opt_mono<tenon::bind::direct<std::optional<P>>> {
    using type = tenon::bind::direct<P>;
};

/// A parameter: lent for the length of the call.
template <typename P>
struct type_caster<tenon::bind::direct<P>> : tenon::bind::slot<P> {
    using Value = tenon::bind::direct<P>;
    static constexpr auto Name = tenon::bind::detail::nanobind_annotation<P>::name;
    template <typename>
    using Cast = Value;

    bool from_python(handle src, uint32_t flags, cleanup_list*) {
        if constexpr (tenon::bind::is_array<P>)
            if ((flags & static_cast<uint32_t>(cast_flags::accepts_none)) != 0 && src.is_none())
                return this->lend_nothing(src.ptr(), tenon::bind::type_of<P>);
        const auto answer = this->load(src.ptr(), (flags & static_cast<uint32_t>(cast_flags::convert)) != 0);
        if (answer == tenon::bind::loading::raised) [[unlikely]]
            throw python_error();
        return answer == tenon::bind::loading::done;
    }
    explicit operator Value() { return {this}; }
};

/// An array that was returned.
template <typename P>
struct type_caster<tenon::bind::returned<P>> {
    using Value = tenon::bind::returned<P>;
    static constexpr auto Name = tenon::bind::detail::nanobind_annotation<P>::name;
    template <typename>
    using Cast = Value;

    static handle from_cpp(Value made, rv_policy, cleanup_list*) noexcept { return made.object; }
};

/// A number.
template <typename T>
struct type_caster<tenon::bind::watched<T>> {
    using Value = tenon::bind::watched<T>;
    static constexpr auto Name = make_caster<T>::Name;
    template <typename>
    using Cast = Value;

    bool from_python(handle src, uint32_t flags, cleanup_list* cleanup) noexcept {
        ran_code_ = !tenon::bind::is_plain_value(src.ptr());
        return caster_.from_python(src, flags, cleanup);
    }
    explicit operator Value() { return {caster_.operator cast_t<T>(), ran_code_}; }

private:
    make_caster<T> caster_;
    bool ran_code_ = false;
};

/// A result; and an array or a tensor in a list, a tuple or a dict. Casters of those may not throw: what ends
/// the call is put off, and nothing is asked after it.
template <tenon::bind::item P>
struct type_caster<P> : tenon::bind::kept_item<P> {
    using Value = P;
    static constexpr auto Name = tenon::bind::detail::nanobind_annotation<P>::name;
    template <typename T_>
    using Cast = movable_cast_t<T_>;
    template <typename>
    static constexpr bool can_cast() {
        return true;
    }

    bool from_python(handle src, uint32_t flags, cleanup_list*) noexcept {
        if (tenon::bind::is_put_off()) return false;
        const auto answer = this->load(src.ptr(), (flags & static_cast<uint32_t>(cast_flags::convert)) != 0);
        if (answer == tenon::bind::loading::raised) tenon::bind::put_off();
        return answer == tenon::bind::loading::done;
    }
    template <typename T>
    static handle from_cpp(T&& value, rv_policy, cleanup_list*) noexcept {
        return tenon::bind::to_python<P>(std::forward<T>(value));
    }
};

/// What `tensor::own` gives, as a result: an error is raised.
template <>
struct type_caster<tenon::result<tenon::tensor>> : type_caster<tenon::tensor> {};

/// A result that names its library.
template <tenon::bind::named_result R>
struct type_caster<R> {
    using Value = R;
    static constexpr auto Name = tenon::bind::joined<descr, R::annotation>();
    template <typename T_>
    using Cast = movable_cast_t<T_>;
    template <typename>
    static constexpr bool can_cast() {
        return true;
    }
    bool from_python(handle, uint32_t, cleanup_list*) noexcept {
        return (tenon::bind::refuse_parameter<R>{}, false);
    }
    template <typename T>
    static handle from_cpp(T&& value, rv_policy, cleanup_list*) noexcept {
        return tenon::bind::named_to_python(std::forward<T>(value));
    }
    explicit operator R*();
    explicit operator R&();
    explicit operator R&&();
};

/// A view, which does not compile.
template <tenon::bind::borrowed_view V>
struct type_caster<V> : tenon::bind::refuse_borrowed<V> {
    using Value = V;
    static constexpr auto Name = const_name("");
    template <typename T_>
    using Cast = movable_cast_t<T_>;
    bool from_python(handle, uint32_t, cleanup_list*) noexcept;
    template <typename T>
    static handle from_cpp(T&&, rv_policy, cleanup_list*) noexcept;
    explicit operator V*();
    explicit operator V&();
    explicit operator V&&();
};

}  // namespace detail
}  // namespace nanobind

#include <tenon/detail/python_engine.hpp>  // last: with TENON_HEADER_ONLY, what stands behind it
