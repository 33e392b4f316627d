// tenon/bind/signature.hpp: reading a signature as a binder prints it: "scale(x: ..., s: float = 2.0) ->
// ...".
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/bind/phrase.hpp>

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
            quote = c;
        } else if (c == '(' || c == '[' || c == '{') {
            ++depth;
        } else if (c == ')' || c == ']' || c == '}') {
            --depth;
        }
    }
    return s.size();
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
    while (!text.empty()) {
        const std::size_t end = detail::find_outside(text, ",");
        std::string_view part = detail::trim(text.substr(0, end));
        text.remove_prefix(end < text.size() ? end + 1 : end);
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

/// The phrases of an annotation, in order: several for a union, none for what takes no arrays. An array-like
/// without a phrase takes anything.
[[nodiscard]] inline std::vector<std::string_view> phrases_in(std::string_view annotation) {
    static constexpr std::string_view word = "ArrayLike";
    std::vector<std::string_view> out;
    for (std::size_t at = annotation.find(word); at != std::string_view::npos;
         at = annotation.find(word, at + 1)) {
        const std::string_view rest = annotation.substr(at + word.size());
        if (rest.starts_with(", '")) {
            const std::string_view phrase_text = rest.substr(3, rest.find('\'', 3) - 3);
            out.push_back(phrase_text);
        } else {
            out.push_back("any[...] on any device");
        }
    }
    return out;
}

enum class container_kind : unsigned char { none, list, tuple, dict };

/// What an annotation that is no array itself has inside: of a list the annotation of its items, of a dict
/// those of keys and values, of a tuple one for each item.
struct container_text {
    container_kind kind = container_kind::none;
    std::vector<std::string_view> elements;
};

[[nodiscard]] inline container_text read_container(std::string_view annotation) {
    using enum container_kind;
    static constexpr std::pair<std::string_view, container_kind> known[] = {
        {"Sequence", list}, {"Iterable", list}, {"list", list},    {"List", list}, {"set", list},
        {"tuple", tuple},   {"Tuple", tuple},   {"Mapping", dict}, {"dict", dict}, {"Dict", dict},
    };
    container_text out;
    const std::size_t open = annotation.find('[');
    const std::string_view head = annotation.substr(0, open);
    for (const auto& [word, kind] : known)
        if (head.substr(head.rfind('.') + 1) == word) out.kind = kind;  // npos + 1 is 0
    if (out.kind == none || open == std::string_view::npos) return {};
    std::string_view inside = annotation.substr(open + 1);
    inside = inside.substr(0, detail::find_outside(inside, "]"));
    while (!inside.empty()) {
        const std::size_t end = detail::find_outside(inside, ",");
        out.elements.push_back(detail::trim(inside.substr(0, end)));
        inside.remove_prefix(end < inside.size() ? end + 1 : end);
    }
    if (out.elements.empty()) return {};
    return out;
}

}  // namespace tenon::bind
