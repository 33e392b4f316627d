// tenon/bind/slot.hpp: the types that arguments are lent as, each as the constant it amounts to, and the room
// for one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <tenon/bind/array.hpp>

namespace tenon::bind {

/// What the binders have a caster for, within lists, tuples and dicts.
template <class P>
concept item = is_array<P> || std::is_same_v<P, tensor>;

template <class P>
inline constexpr bool is_slotted = item<P>;
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
inline constexpr const parameter_type& type_of = described<std::remove_cvref_t<T>>;
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
template <class P>
inline constexpr std::string_view annotation_out = P::annotation_of_result.view();
template <>
inline constexpr std::string_view annotation_out<tensor> = "tenon.Tensor";

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
    return {parameter_kind::tuple, false, sizeof...(T), nullptr, types_of<T...>};
}
[[nodiscard]] consteval parameter_type describe_parts(...) noexcept { return {}; }

template <class T>
consteval parameter_type describe() noexcept {
    if constexpr (!mentions_arrays<T>) {
        return {};
    } else if constexpr (is_array<T>) {
        return {parameter_kind::array, false, 1, specs_of<T>, nullptr};
    } else if constexpr (std::is_same_v<T, tensor>) {
        return {parameter_kind::tensor, false, 1, tensor_specs, nullptr};
    } else if constexpr (is_a<T, std::optional>) {
        parameter_type type = type_of<typename T::value_type>;
        type.accepts_none = true;
        return type;
    } else if constexpr (requires { typename T::mapped_type; }) {
        return {parameter_kind::mapping, false, 1, nullptr, types_of<typename T::mapped_type>};
    } else if constexpr (requires { typename T::value_type; }) {
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
    } else if constexpr (is_a<P, std::optional>) {
        return f.ref != nullptr ? P(std::in_place, std::move(f)) : std::nullopt;
    } else {
        if constexpr (I + 1 < std::variant_size_v<P>)
            if (f.index != I) return value_of<P, I + 1>(std::move(f));
        return P(std::in_place_index<I>, std::move(f));
    }
}

/// Room for an argument of type `P`.
template <class P>
class slot : public argument {
public:
    slot() noexcept {}  // NOLINT(modernize-use-equals-default): as the argument's
    [[nodiscard]] loading load(PyObject* obj, bool may_convert) noexcept {
        return argument::load(obj, type_of<P>, may_convert);
    }
    [[nodiscard]] P& value() noexcept {
        if constexpr (std::is_same_v<P, tensor>)
            return kept();
        else
            return value_.emplace(value_of<P>(lent()));
    }

private:
    struct nothing {};
    std::conditional_t<std::is_same_v<P, tensor>, nothing, std::optional<P>> value_;
};

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

}  // namespace tenon::bind
