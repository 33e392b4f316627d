// src/value/error.cpp: errors made, and as sentences.
#include <tenon/value/dtype_names.hpp>
#include <tenon/value/error.hpp>
#include "sentence.hpp"

namespace tenon {

TENON_COLD [[nodiscard]] inline error made_error(errc code, const char* field, const char* problem,
                                                 error::detail_kind detail = error::detail_kind::none,
                                                 std::int64_t got = 0, std::int64_t wanted = 0) noexcept {
    return {code, detail, 0, -1, field, problem, nullptr, got, wanted, nullptr, nullptr};
}

TENON_COLD TENON_INLINE error malformed(const char* field, const char* problem) noexcept {
    return made_error(errc::malformed, field, problem);
}
TENON_COLD TENON_INLINE error malformed(const char* field, const char* problem, std::int64_t got) noexcept {
    return made_error(errc::malformed, field, problem, error::detail_kind::got, got);
}
TENON_COLD TENON_INLINE error refused(const char* field, const char* problem) noexcept {
    return made_error(errc::refused, field, problem);
}
TENON_COLD TENON_INLINE error refused(const char* field, const char* problem, std::int64_t got) noexcept {
    return made_error(errc::refused, field, problem, error::detail_kind::got, got);
}
TENON_COLD TENON_INLINE error refused(const char* field, const char* problem, std::int64_t got,
                                      std::int64_t wanted) noexcept {
    return made_error(errc::refused, field, problem, error::detail_kind::got_wanted, got, wanted);
}
TENON_COLD TENON_INLINE error refused(const char* field, const char* problem, device got,
                                      device wanted) noexcept {
    return made_error(errc::refused, field, problem, error::detail_kind::devices,
                      std::bit_cast<std::int64_t>(got), std::bit_cast<std::int64_t>(wanted));
}
TENON_COLD TENON_INLINE error refused(const char* field, const char* problem, dtype got,
                                      dtype wanted) noexcept {
    return made_error(errc::refused, field, problem, error::detail_kind::dtypes,
                      std::bit_cast<std::uint32_t>(got), std::bit_cast<std::uint32_t>(wanted));
}
TENON_COLD TENON_INLINE error refused_bits(const char* field, const char* problem,
                                           std::uint64_t got) noexcept {
    return made_error(errc::refused, field, problem, error::detail_kind::got_hex,
                      static_cast<std::int64_t>(got));
}
TENON_COLD TENON_INLINE error not_taken(const char* problem, const dtype* types, std::size_t count,
                                        dtype got) noexcept {
    error e = made_error(errc::not_taken, "dtype", problem, error::detail_kind::types,
                         std::bit_cast<std::uint32_t>(got), static_cast<std::int64_t>(count));
    e.types = types;
    return e;
}
TENON_COLD TENON_INLINE error out_of_memory(const char* field) noexcept {
    return made_error(errc::no_memory, field, "out of memory");
}

/// "float32, float64 or int64".
[[nodiscard]] inline std::string names_of(const dtype* types, std::int64_t count) {
    std::string out;
    for (std::int64_t i = 0; i < count; ++i)
        out.append(i == 0 ? "" : i + 1 == count ? " or " : ", ").append(name(types[i]));
    return out;
}

TENON_COLD TENON_INLINE std::string error::message() const {
    std::string out = field;
    if (axis >= 0) append(out, {"[", axis, "]"});
    if (!out.empty()) out += ": ";
    if (which != 0) out = sentence({"tensor ", which, ": ", out});
    out += problem;
    const auto spelled = [this](std::int64_t value) {
        if (detail == detail_kind::devices) return name(std::bit_cast<device>(value));
        if (detail == detail_kind::dtypes)
            return name(std::bit_cast<dtype>(static_cast<std::uint32_t>(value)));
        if (detail != detail_kind::got_hex) return sentence({value});
        return sentence({"0x", digits(static_cast<std::uint64_t>(value), false, 16).text()});
    };
    if (detail == detail_kind::types) {
        const auto came = std::bit_cast<dtype>(static_cast<std::uint32_t>(got));
        append(out, {" ", names_of(types, wanted), ", got ", name(came)});
    } else if (detail != detail_kind::none) {
        append(out, {" (got ", spelled(got)});
        if (detail != detail_kind::got && detail != detail_kind::got_hex)
            append(out, {", expected ", spelled(wanted)});
        out += ')';
    }
    if (advice != nullptr) append(out, {"; ", advice});
    return out;
}

}  // namespace tenon
