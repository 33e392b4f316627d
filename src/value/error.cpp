// src/value/error.cpp: errors made, and as sentences.
#include <tenon/value/error.hpp>
#include "../standard.hpp"

namespace tenon {

namespace detail {

inline std::string hex(std::uint64_t v) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string out;
    do {
        out.insert(out.begin(), digits[v & 15U]);
        v >>= 4U;
    } while (v != 0);
    return "0x" + out;
}

}  // namespace detail

TENON_COLD TENON_INLINE error malformed(const char* field, const char* problem) noexcept {
    return {errc::malformed, error::detail_kind::none, 0, -1, field, problem, nullptr, 0, 0};
}
TENON_COLD TENON_INLINE error malformed(const char* field, const char* problem, std::int64_t got) noexcept {
    return {errc::malformed, error::detail_kind::got, 0, -1, field, problem, nullptr, got, 0};
}
TENON_COLD TENON_INLINE error refused(const char* field, const char* problem) noexcept {
    return {errc::refused, error::detail_kind::none, 0, -1, field, problem, nullptr, 0, 0};
}
TENON_COLD TENON_INLINE error refused(const char* field, const char* problem, std::int64_t got) noexcept {
    return {errc::refused, error::detail_kind::got, 0, -1, field, problem, nullptr, got, 0};
}
TENON_COLD TENON_INLINE error refused(const char* field, const char* problem, std::int64_t got,
                                      std::int64_t wanted) noexcept {
    return {errc::refused, error::detail_kind::got_wanted, 0, -1, field, problem, nullptr, got, wanted};
}
TENON_COLD TENON_INLINE error refused(const char* field, const char* problem, device got,
                                      device wanted) noexcept {
    error e = refused(field, problem, std::bit_cast<std::int64_t>(got), std::bit_cast<std::int64_t>(wanted));
    e.detail = error::detail_kind::devices;
    return e;
}
TENON_COLD TENON_INLINE error refused_bits(const char* field, const char* problem,
                                           std::uint64_t got) noexcept {
    error e = refused(field, problem, static_cast<std::int64_t>(got));
    e.detail = error::detail_kind::got_hex;
    return e;
}
TENON_COLD TENON_INLINE error out_of_memory(const char* field) noexcept {
    return {errc::no_memory, error::detail_kind::none, 0, -1, field, "out of memory", nullptr, 0, 0};
}

TENON_COLD TENON_INLINE std::string error::message() const {
    std::string out = field;
    if (axis >= 0) out.append(1, '[').append(std::to_string(axis)).append(1, ']');
    if (!out.empty()) out += ": ";
    if (which != 0) out.insert(0, "tensor " + std::to_string(which) + ": ");
    out += problem;
    switch (detail) {
        case detail_kind::none:
            break;
        case detail_kind::got:
            out.append(" (got ").append(std::to_string(got)).append(1, ')');
            break;
        case detail_kind::got_wanted:
            out.append(" (got ").append(std::to_string(got));
            out.append(", expected ").append(std::to_string(wanted)).append(1, ')');
            break;
        case detail_kind::got_hex:
            out.append(" (got ").append(tenon::detail::hex(static_cast<std::uint64_t>(got))).append(1, ')');
            break;
        case detail_kind::devices:
            out.append(" (got ").append(name(std::bit_cast<device>(got)));
            out.append(", expected ").append(name(std::bit_cast<device>(wanted))).append(1, ')');
            break;
    }
    if (advice != nullptr) out.append("; ").append(advice);
    return out;
}

}  // namespace tenon
