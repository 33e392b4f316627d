// src/value/names.cpp: element types and devices by name.
#include <tenon/value/device.hpp>
#include <tenon/value/dtype_names.hpp>
#include "sentence.hpp"

namespace tenon {

TENON_COLD TENON_INLINE std::string name(dtype t) {
    if (const dtype_entry* e = find_dtype(t)) return std::string(e->name);
    return sentence({"dtype(code=", t.code, ", bits=", t.bits, ", lanes=", t.lanes, ")"});
}

TENON_COLD TENON_INLINE std::string name(device d) {
    if (d == device{}) return "cpu";
    for (const auto& e : detail::device_table)
        if (e.type == d.type) return sentence({e.name, ":", d.id});
    return sentence({"device(", d.type, "):", d.id});
}

TENON_INLINE std::optional<device> device_from_name(std::string_view text) noexcept {
    const std::size_t colon = text.find(':');
    const std::string_view kind = text.substr(0, colon);
    const auto number = [](std::string_view rest) -> std::optional<std::int32_t> {
        const std::int64_t value = take_number(rest);
        if (value < 0 || value > std::numeric_limits<std::int32_t>::max() || !rest.empty())
            return std::nullopt;
        return static_cast<std::int32_t>(value);
    };
    const auto id = colon != std::string_view::npos ? number(text.substr(colon + 1)) : 0;
    if (!id) return std::nullopt;
    for (const auto& e : detail::device_table)
        if (e.name == kind) return device{e.type, *id};
    constexpr std::string_view nameless = "device(";
    if (!kind.starts_with(nameless) || !kind.ends_with(')')) return std::nullopt;
    const auto type = number(kind.substr(nameless.size(), kind.size() - nameless.size() - 1));
    if (!type || *type <= 0 || is_known(device{*type, *id})) return std::nullopt;
    return device{*type, *id};
}

}  // namespace tenon
