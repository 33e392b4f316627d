// tenon/bind/annotation.hpp: a request as a Python type, for signatures and stubs: what type checkers read.
#pragma once

#include <optional>
#include <string_view>

#include <tenon/bind/phrase.hpp>
#include <tenon/tensor/request.hpp>
#include <tenon/value/dtype_names.hpp>

namespace tenon::bind {

/// The type of NumPy's that stands for an element type, where it has one of its own: "numpy.float32".
constexpr void spell_element(phrase& out, const std::optional<dtype>& type) noexcept {
    for (const dtype_entry& known : tenon::detail::dtype_table) {
        if (type && known.type == *type && !known.typestr.empty()) {
            out << "numpy." << known.name << (known.name == "bool" ? "_" : "");
            return;
        }
    }
    out << "typing.Any";
}

/// A parameter: "tenon.typing.Array[numpy.float32, typing.Literal['float32[*]']]". Of one that is converted
/// the element type may be any. Overloads that ask for different things are different types by their words.
[[nodiscard]] constexpr phrase annotate(const request& r, conversions converts = conversions::none) noexcept {
    phrase out;
    out << "tenon.typing.Array[";
    spell_element(out, converts == conversions::none ? r.type : std::nullopt);
    out << ", typing.Literal['" << spell(r, converts).view() << "']]";
    return out;
}

/// A result, which is an array of the caller's library.
[[nodiscard]] constexpr phrase annotate_result(const request& r) noexcept {
    phrase out;
    out << "typing.Annotated[typing.Any, '" << spell(r).view() << "']";
    return out;
}

}  // namespace tenon::bind
