// tenon/bind/slot.hpp: the types that arguments are lent as, each as the constant it amounts to, and the room
// for one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <tenon/bind/array.hpp>
#include <tenon/bind/results.hpp>
#include <tenon/detail/binders.hpp>

namespace tenon::bind {

/// What the binders have a caster for, within lists, tuples and dicts.
template <class P>
concept item = tenon::detail::bindable<P> &&
               (is_array<P> || std::is_same_v<P, tensor> || std::is_same_v<P, shared_tensor>);
/// A result that names its library, and is no parameter.
template <class P>
concept named_result = tenon::detail::bindable<P> && is_library_array<P>;

// What shows memory and keeps nothing alive: it is no parameter, no result, and no member of a class.
template <class T>
inline constexpr bool keeps_nothing = std::is_same_v<T, tensor_ref>;
template <class T, int Rank>
inline constexpr bool keeps_nothing<view<T, Rank>> = true;
template <class T, int Rank>
inline constexpr bool keeps_nothing<device_view<T, Rank>> = true;
template <class T>
inline constexpr bool keeps_nothing<result<T>> = keeps_nothing<T>;
template <class P>
concept borrowed_view = keeps_nothing<P>;
/// Nor does a span, which other functions may have a use for.
template <class T>
inline constexpr bool is_span = false;
template <class T, std::size_t Size>
inline constexpr bool is_span<std::span<T, Size>> = true;
template <class T>
inline constexpr bool is_span<result<T>> = is_span<T>;

/// Stops with a sentence where a binder would look for a way to show `T` to Python.
template <class T>
struct refuse_borrowed {
    static_assert(
        !keeps_nothing<T> && !is_span<T>,
        "a view or a span keeps nothing alive: take and keep a tenon::array or a tenon::tensor, and "
        "return one of these");
};
template <class T>
struct refuse_parameter {
    static_assert(
        !is_library_array<T>,
        "a type that names a library is a result: take a tenon::array, whose library is the caller's");
};

template <class P>
struct passing;
/// The type of a parameter, without reference, and of what becomes one.
template <class Arg>
struct bare_parameter : std::type_identity<Arg> {};
template <class P>
struct bare_parameter<passing<P>> : std::type_identity<P> {};
template <class Arg>
using bare = typename bare_parameter<std::remove_cvref_t<Arg>>::type;

template <class P>
inline constexpr bool is_slotted = item<P>;
template <class P>
inline constexpr bool is_slotted<passing<P>> = true;
template <class P>
inline constexpr bool is_slotted<std::optional<P>> = is_array<P>;
template <class... P>
inline constexpr bool is_slotted<std::variant<P...>> = (is_array<P> && ...);

/// The type is, or contains, an array or a tensor: a list of them, an optional one.
template <class T>
inline constexpr bool mentions_arrays = is_slotted<T>;
template <template <class...> class Container, class... T>
    requires(!is_slotted<Container<T...>>)
inline constexpr bool mentions_arrays<Container<T...>> = (mentions_arrays<std::remove_cvref_t<T>> || ...);
template <template <class, std::size_t> class Container, class T, std::size_t N>
inline constexpr bool mentions_arrays<Container<T, N>> = mentions_arrays<std::remove_cvref_t<T>>;
/// A list of arrays, say, and not an array itself.
template <class T>
inline constexpr bool contains_arrays = mentions_arrays<T> && !is_slotted<T>;

// --- parameter types as constants --------------------------------------------------------------------------

template <class T, template <class...> class Of>
inline constexpr bool is_a = false;
template <class... T, template <class...> class Of>
inline constexpr bool is_a<Of<T...>, Of> = true;

template <class T>
[[nodiscard]] consteval parameter_type describe() noexcept;
template <class T>
inline constexpr parameter_type described = describe<T>();
/// The description of `T`, the same object wherever it is asked for in a module.
template <class T>
inline constexpr const parameter_type& type_of = described<bare<T>>;
template <class... T>
inline constexpr const parameter_type* types_of[sizeof...(T) + 1] = {&type_of<T>..., nullptr};

template <class... P>
inline constexpr const parameter_spec* specs_of[] = {&P::spec...};
inline constexpr parameter_spec tensor_spec{{}, conversions::none, "any[...] on any device", ""};
inline constexpr words<annotate({}).size> tensor_annotation{annotate({})};
inline constexpr const parameter_spec* tensor_specs[] = {&tensor_spec};

/// How a signature has an array or a tensor: as a parameter, and as a result.
template <class P>
inline constexpr std::string_view annotation_in = P::annotation.view();
template <>
inline constexpr std::string_view annotation_in<tensor> = tensor_annotation.view();
template <>
inline constexpr std::string_view annotation_in<shared_tensor> = annotation_in<tensor>;
template <class P>
inline constexpr std::string_view annotation_out = P::annotation_of_result.view();
template <>
inline constexpr std::string_view annotation_out<tensor> = "tenon.Tensor";
template <>
inline constexpr std::string_view annotation_out<shared_tensor> = "typing.Any";  // the very object that came

/// Of types that are known by their parts: a variant, a tuple or a pair, and others, which nobody knows.
template <class... P>
[[nodiscard]] consteval parameter_type describe_parts(std::type_identity<std::variant<P...>>) noexcept {
    if constexpr (is_slotted<std::variant<P...>>)
        return {parameter_kind::array, false, sizeof...(P), specs_of<P...>, nullptr};
    else
        return {parameter_kind::one_of, false, sizeof...(P), nullptr, types_of<P...>};
}
template <template <class...> class Tuple, class... T>
    requires(std::tuple_size<Tuple<T...>>::value == sizeof...(T))
[[nodiscard]] consteval parameter_type describe_parts(std::type_identity<Tuple<T...>>) noexcept {
    static_assert(!(type_of<T>.relates() || ...),
                  "tenon::shape: a name relates parameters of a function, not the items of a list");
    return {parameter_kind::tuple, false, sizeof...(T), nullptr, types_of<T...>};
}
[[nodiscard]] consteval parameter_type describe_parts(...) noexcept { return {}; }

template <class T>
consteval parameter_type describe() noexcept {
    if constexpr (!mentions_arrays<T>) {
        return {};
    } else if constexpr (is_array<T>) {
        return {parameter_kind::array, false, 1, specs_of<T>, nullptr};
    } else if constexpr (item<T>) {
        return {parameter_kind::tensor, false, 1, tensor_specs, nullptr};
    } else if constexpr (is_a<T, std::optional>) {
        parameter_type type = type_of<typename T::value_type>;
        type.accepts_none = true;
        return type;
    } else if constexpr (requires { typename T::mapped_type; }) {
        static_assert(!type_of<typename T::mapped_type>.relates(),
                      "tenon::shape: a name relates parameters of a function, not the items of a list");
        return {parameter_kind::mapping, false, 1, nullptr, types_of<typename T::mapped_type>};
    } else if constexpr (requires { typename T::value_type; }) {
        static_assert(!type_of<typename T::value_type>.relates(),
                      "tenon::shape: a name relates parameters of a function, not the items of a list");
        return {parameter_kind::list, false, 1, nullptr, types_of<typename T::value_type>};
    } else {
        return describe_parts(std::type_identity<T>{});
    }
}

// --- rooms ------------------------------------------------------------------------------------------------

/// What was found, as the function wants it; of several arrays the one that it was taken as, from `I` on.
template <class P, std::size_t I = 0>
[[nodiscard]] P value_of(found&& f) noexcept {
    if constexpr (is_array<P>) {
        return P(std::move(f));
    } else if constexpr (std::is_same_v<P, tensor>) {
        return take_tensor(std::move(f.keeps));
    } else if constexpr (std::is_same_v<P, shared_tensor>) {
        return shared_tensor(std::move(f.keeps));
    } else if constexpr (is_a<P, std::optional>) {
        return f.ref != nullptr ? P(std::in_place, std::move(f)) : std::nullopt;
    } else {
        if constexpr (I + 1 < std::variant_size_v<P>)
            if (f.index != I) return value_of<P, I + 1>(std::move(f));
        return P(std::in_place_index<I>, std::move(f));
    }
}

/// One of the parameter's alternatives takes a number of Python's.
[[nodiscard]] consteval bool takes_numbers(const parameter_type& type) noexcept {
    bool takes = false;
    for (unsigned i = 0; type.is_ours() && i < type.count; ++i) takes = takes || type.specs[i]->numbers;
    return takes;
}

/// Room for an argument of type `P`.
template <class P>
class slot : public argument {
public:
    static constexpr bool relates = type_of<P>.relates();

    slot() noexcept {}  // NOLINT(modernize-use-equals-default): as the argument's
    slot(const slot&) = delete;
    slot& operator=(const slot&) = delete;
    ~slot() {
        if (is_made_) value_.~kept_value();
    }

    [[nodiscard]] loading load(PyObject* obj, bool may_convert) noexcept {
        if constexpr (takes_numbers(type_of<P>))
            return argument::load_or_number(obj, type_of<P>, may_convert);
        else
            return argument::load(obj, type_of<P>, may_convert);
    }
    /// What is lent, made where it is wanted: a copy would keep it. Once.
    [[nodiscard]] P give() {
        if constexpr (std::is_same_v<P, tensor>)
            return std::move(kept());
        else if constexpr (std::is_same_v<P, shared_tensor>)
            return keep_shared(std::move(kept()), source());
        else
            return value_of<P>(lent());
    }
    /// The same, kept in the room: for a function that takes a reference.
    [[nodiscard]] P& value() {
        if constexpr (std::is_same_v<P, tensor>) {
            return kept();
        } else {
            if (!is_made_) ::new (static_cast<void*>(&value_)) P(give());
            is_made_ = true;
            return value_;
        }
    }

private:
    struct nothing {};
    using kept_value = std::conditional_t<std::is_same_v<P, tensor>, nothing, P>;
    bool is_made_ = false;
    union {
        kept_value value_;
    };
};

/// An argument on its way into a function: it becomes the parameter where that is.
template <class P>
struct passing {
    slot<P>& room;
    operator P() const { return room.give(); }  // NOLINT(google-explicit-constructor)
};
/// The argument as the function wants it: by value, by reference, to be moved from.
template <class Arg, class P>
[[nodiscard]] decltype(auto) pass(slot<P>& room) {
    if constexpr (std::is_reference_v<Arg>)
        return static_cast<Arg&&>(room.value());
    else
        return passing<P>{room};
}
template <class Arg, class Room>
    requires(!std::is_base_of_v<argument, Room>)
[[nodiscard]] Arg&& pass(Room& room) {
    return static_cast<Arg&&>(room.value());
}

/// An array that a function has returned, as Python's: a new reference, or null with an exception set.
template <class P>
struct returned {
    PyObject* object;
};
struct no_guard {};
template <class Room>
void set_result_place(Room& room, const void* place) noexcept {
    if constexpr (std::is_base_of_v<argument, Room>) room.set_result_place(place);
}
/// Calls a function that returns an array, under `Guard`, and gives that back where it was made: an argument
/// that is returned goes back as it came.
template <class P, class Guard, class Fn, class... Room>
[[nodiscard]] returned<P> call_for_array(Fn&& call, Room&... rooms) {
    struct place {
        place() noexcept {}
        ~place() {
            if (is_made) value.~P();
        }
        union {
            P value;
        };
        bool is_made = false;
    } result;
    (set_result_place(rooms, &result.value), ...);
    {
        [[maybe_unused]] Guard guard{};
        ::new (static_cast<void*>(&result.value)) P(call());
        result.is_made = true;
    }
    return {std::move(result.value).to_python()};
}

/// Room for an array or a tensor inside of a list, a tuple or a dict, which keeps what it shows.
template <class P>
class kept_item {
public:
    [[nodiscard]] loading load(PyObject* obj, bool may_convert) noexcept {
        found f;
        const loading answer = load_kept(obj, type_of<P>, may_convert, f);
        if (answer == loading::done) value_.emplace(value_of<P>(std::move(f)));
        return answer;
    }
    [[nodiscard]] P& value() noexcept { return *value_; }
    // As the binders ask their casters for it.
    explicit operator P*() noexcept { return &*value_; }
    explicit operator P&() noexcept { return *value_; }
    explicit operator P&&() noexcept { return std::move(*value_); }

private:
    std::optional<P> value_;
};

/// An argument that somebody else's caster has loaded.
struct foreign_room {
    bool has_run_code;
    [[nodiscard]] bool ran_code() const noexcept { return has_run_code; }
};

/// What the engine needs of a room: all of one of ours, of another whether it is known to have run no code.
template <class Room>
[[nodiscard]] loaded loaded_in(Room& room) noexcept {
    if constexpr (std::is_base_of_v<argument, Room>)
        return {&room, false};
    else if constexpr (requires { room.ran_code(); })
        return {nullptr, room.ran_code()};
    else
        return {nullptr, true};
}
template <class Room>
inline constexpr bool has_relations = false;
template <class Room>
    requires(Room::relates)
inline constexpr bool has_relations<Room> = true;
/// `find_unrelated`, where there is something to look for.
template <class... Room>
[[nodiscard]] int find_unrelated_room(Room&... rooms) noexcept {
    if constexpr ((has_relations<std::remove_cv_t<Room>> || ...)) {
        const loaded all[] = {loaded_in(rooms)...};
        return find_unrelated(all, sizeof...(Room));
    } else {
        return -1;
    }
}
/// Settles all of a call's arguments.
template <class... Room>
[[nodiscard]] bool settle_rooms(Room&... rooms) noexcept {
    if constexpr (!(std::is_base_of_v<argument, Room> || ...)) {
        return true;
    } else if constexpr (sizeof...(Room) == 1) {
        return (... && (!rooms.waits() || rooms.settle()));
    } else {
        const loaded all[] = {loaded_in(rooms)...};
        return settle_all(all, sizeof...(Room));
    }
}

/// Settles them, which must fit together before and after: -1 when they do; else the first that does not,
/// counted from 0, with the reason noted; or `has_raised`.
inline constexpr int has_raised = -2;
template <class... Room>
[[nodiscard]] int settle_together(Room&... rooms) noexcept {
    if (const int unfit = find_unrelated_room(rooms...); unfit >= 0) return unfit;
    return settle_rooms(rooms...) ? find_unrelated_room(rooms...) : has_raised;
}

}  // namespace tenon::bind
