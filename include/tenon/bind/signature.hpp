// tenon/bind/signature.hpp: reading a signature as a binder prints it: "scale(x: ..., s: float = 2.0) ->
// ...".
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace tenon::bind {

/// A parameter, as it stands in the text of its signature.
struct parameter_text {
    std::string_view name;        ///< without stars
    std::string_view annotation;  ///< empty when there is none
    bool has_default = false;
    bool is_keyword_only = false;
    int stars = 0;  ///< 1 for *args, 2 for **kwargs
};

namespace detail {

inline std::string_view trim(std::string_view s) noexcept {
    while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
    while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
    return s;
}

/// Whether a quote at `at` opens text: "'a'", "b'a'", but not the one of "<Bob's object>".
inline bool opens_text(std::string_view s, std::size_t at) noexcept {
    const auto is_letter = [&](std::size_t i) {
        return (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') || (s[i] >= '0' && s[i] <= '9');
    };
    return at == 0 || !is_letter(at - 1) || (s[at - 1] == 'b' && (at == 1 || !is_letter(at - 2)));
}

/// The first place outside of brackets and quotes where one of `marks` stands, or the end.
inline std::size_t find_outside(std::string_view s, std::string_view marks) noexcept {
    int depth = 0;
    char quote = '\0';
    for (std::size_t i = 0; i < s.size(); ++i) {
        const char c = s[i];
        if (quote != '\0') {
            if (c == '\\')
                ++i;
            else if (c == quote)
                quote = '\0';
        } else if (depth == 0 && marks.find(c) != std::string_view::npos) {
            return i;
        } else if (c == '\'' || c == '"') {
            if (opens_text(s, i)) quote = c;
        } else if (c == '(' || c == '[' || c == '{') {
            ++depth;
        } else if (c == ')' || c == ']' || c == '}') {
            --depth;
        }
    }
    return s.size();
}

/// The parts between marks outside of brackets and quotes.
inline std::vector<std::string_view> split_outside(std::string_view s, std::string_view mark) {
    std::vector<std::string_view> out;
    while (!s.empty()) {
        const std::size_t end = find_outside(s, mark);
        out.push_back(trim(s.substr(0, end)));
        s.remove_prefix(end < s.size() ? end + 1 : end);
    }
    return out;
}

}  // namespace detail

/// The parameters between the first parenthesis and its partner.
[[nodiscard]] inline std::vector<parameter_text> read_signature(std::string_view text) {
    std::vector<parameter_text> out;
    const std::size_t open = text.find('(');
    if (open == std::string_view::npos) return out;
    text.remove_prefix(open + 1);
    text = text.substr(0, detail::find_outside(text, ")"));
    bool keyword_only = false;
    for (std::string_view part : detail::split_outside(text, ",")) {
        if (part == "*") keyword_only = true;
        if (part == "*" || part == "/" || part.empty()) continue;
        parameter_text p;
        for (; !part.empty() && part.front() == '*'; part.remove_prefix(1)) ++p.stars;
        const std::size_t equals = detail::find_outside(part, "=");
        p.has_default = equals < part.size();
        part = part.substr(0, equals);
        const std::size_t colon = detail::find_outside(part, ":");
        p.name = detail::trim(part.substr(0, colon));
        if (colon < part.size()) p.annotation = detail::trim(part.substr(colon + 1));
        p.is_keyword_only = keyword_only;
        if (p.stars != 0) keyword_only = true;
        out.push_back(p);
    }
    return out;
}

/// The phrase of an annotation of ours, which may be any array; nothing for what another caster has written,
/// be it "numpy.typing.ArrayLike, numpy.float32".
[[nodiscard]] inline std::optional<std::string_view> phrase_of(std::string_view annotation) noexcept {
    static constexpr std::string_view open = "typing.Annotated[numpy.typing.ArrayLike, '", close = "']";
    if (annotation == "numpy.typing.ArrayLike") return "any[...] on any device";
    if (!annotation.starts_with(open) || !annotation.ends_with(close)) return std::nullopt;
    return annotation.substr(open.size(), annotation.size() - open.size() - close.size());
}

/// The annotation mentions an array of ours, or one in a list and the like.
[[nodiscard]] inline bool mentions_phrase(std::string_view text) noexcept {
    static constexpr std::string_view word = "numpy.typing.ArrayLike";
    for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
        const bool is_annotated = text.substr(0, at).ends_with("Annotated[");
        if (!is_annotated || text.substr(at + word.size()).starts_with(", '")) return true;
    }
    return false;
}

/// The alternatives of a union, or the annotation itself.
[[nodiscard]] inline std::vector<std::string_view> union_parts(std::string_view annotation) {
    return detail::split_outside(annotation, "|");
}

/// What is between the brackets of `list[...]`, part by part.
[[nodiscard]] inline std::vector<std::string_view> bracketed_parts(std::string_view annotation) {
    const std::size_t open = annotation.find('[');
    if (open == std::string_view::npos) return {};
    annotation.remove_prefix(open + 1);
    return detail::split_outside(annotation.substr(0, detail::find_outside(annotation, "]")), ",");
}

/// "Sequence" of "collections.abc.Sequence[...]".
[[nodiscard]] inline std::string_view kind_of(std::string_view annotation) noexcept {
    const std::string_view head = annotation.substr(0, annotation.find('['));
    return head.substr(head.rfind('.') + 1);  // npos + 1 is 0
}
[[nodiscard]] inline bool is_mapping(std::string_view annotation) noexcept {
    const std::string_view kind = kind_of(annotation);
    return kind == "Mapping" || kind == "dict";
}
/// The annotation is a list, a tuple or a dict of arrays and not an array itself.
[[nodiscard]] inline bool is_container(std::string_view annotation) noexcept {
    const std::string_view kind = kind_of(annotation);
    return is_mapping(annotation) || kind == "Sequence" || kind == "Iterable" || kind == "list" ||
           kind == "tuple" || kind == "set";
}

/// The annotations of a tuple's elements, one after the other; none for what is no tuple of a fixed length.
[[nodiscard]] inline std::vector<std::string_view> tuple_parts(std::string_view annotation) {
    if (kind_of(annotation) != "tuple") return {};
    std::vector<std::string_view> out = bracketed_parts(annotation);
    if (!out.empty() && out.back() == "...") out.clear();
    return out;
}

/// The annotation of each element of a list, or of each value of a dict.
[[nodiscard]] inline std::string_view element_annotation(std::string_view annotation) {
    const std::vector<std::string_view> parts = bracketed_parts(annotation);
    if (parts.empty()) return {};
    return is_mapping(annotation) ? parts.back() : parts.front();
}

}  // namespace tenon::bind
