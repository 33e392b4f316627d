// src/bind/relations.cpp: extents of the same name are compared across the arguments of a call, and arguments
// are found that errors are about.
#include <tenon/bind/argument.hpp>
#include "loader.hpp"

namespace tenon::bind {

TENON_INLINE unsigned argument_about(const error& e, const loaded* arguments, unsigned count) noexcept {
    unsigned i = 0;
    const auto is_it = [&](argument* one) {
        return one != nullptr && loader{*one}.shape_storage() == e.about;
    };
    while (i < count && !is_it(arguments[i].ours)) ++i;
    return e.about != nullptr ? i : count;
}

/// The first axis of those before this one that has the name.
[[nodiscard]] inline std::optional<related_axis> axis_named(std::string_view name, const loaded* arguments,
                                                            unsigned argument, std::size_t axis) noexcept {
    for (unsigned i = 0; i <= argument; ++i) {
        if (arguments[i].ours == nullptr || !loader{*arguments[i].ours}.has_names()) continue;
        const loader room{*arguments[i].ours};
        const extents shape = room.shape();
        const std::size_t end = i == argument ? axis : shape.size();
        for (std::size_t k = 0; k < end; ++k) {
            if (name == room.name_of_axis(k)) return related_axis{name, shape[k], i, k};
        }
    }
    return std::nullopt;
}

TENON_INLINE int find_unrelated(const loaded* arguments, unsigned count) noexcept {
    for (unsigned i = 0; i < count; ++i) {
        if (arguments[i].ours == nullptr || !loader{*arguments[i].ours}.has_names()) continue;
        const loader room{*arguments[i].ours};
        const extents shape = room.shape();
        for (std::size_t k = 0; k < shape.size(); ++k) {
            const std::string_view name = room.name_of_axis(k);
            const auto first = !name.empty() ? axis_named(name, arguments, i, k) : std::nullopt;
            if (!first || first->extent == shape[k]) continue;
            room.note_unrelated(k, *first);
            return static_cast<int>(i);
        }
    }
    return -1;
}

}  // namespace tenon::bind
