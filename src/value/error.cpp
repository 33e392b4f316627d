// src/value/error.cpp: errors made, and as sentences.
#include <tenon/value/error.hpp>
#include "../standard.hpp"

namespace tenon {

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
    const auto spelled = [this](std::int64_t value) {
        if (detail == detail_kind::devices) return name(std::bit_cast<device>(value));
        if (detail != detail_kind::got_hex) return std::to_string(value);
        char digits[16];
        const auto end = std::to_chars(digits, std::end(digits), static_cast<std::uint64_t>(value), 16).ptr;
        return "0x" + std::string(digits, end);
    };
    if (detail != detail_kind::none) out.append(" (got ").append(spelled(got));
    if (detail == detail_kind::got_wanted || detail == detail_kind::devices)
        out.append(", expected ").append(spelled(wanted));
    if (detail != detail_kind::none) out += ')';
    if (advice != nullptr) out.append("; ").append(advice);
    return out;
}

}  // namespace tenon
