// tenon/bind/annotation.hpp: a request as a Python type, for signatures and stubs: what type checkers read.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include <tenon/bind/phrase.hpp>
#include <tenon/tensor/request.hpp>
#include <tenon/value/dtype_names.hpp>

namespace tenon::bind {

/// The type of NumPy's that stands for an element type: "numpy.float32". False where it has none of its own.
constexpr bool spell_element(phrase& out, dtype type) noexcept {
    for (const dtype_entry& known : tenon::detail::dtype_table) {
        if (known.type != type || known.typestr.empty()) continue;
        out << "numpy." << known.name << (known.name == "bool" ? "_" : "");
        return true;
    }
    return false;
}

/// Those of a request: "numpy.float32 | numpy.float64"; "typing.Any" where one has none, or any will do.
[[nodiscard]] constexpr phrase spell_elements(const request& r) noexcept {
    phrase out;
    bool is_known = r.type ? spell_element(out, *r.type) : !r.types.empty();
    for (std::size_t i = 0; !r.type && is_known && i < r.types.size(); ++i) {
        if (i != 0) out << " | ";
        is_known = spell_element(out, r.types[i]);
    }
    if (!is_known) out = phrase() << "typing.Any";
    return out;
}

/// A parameter: "tenon.typing.Array[numpy.float32, typing.Literal['float32[*]']]". Of one that is converted
/// the element type may be any. Overloads that ask for different things are different types by their words.
[[nodiscard]] constexpr phrase annotate(const request& r, conversions converts = conversions::none,
                                        bool takes_numbers = false,
                                        std::span<const char* const> names = {}) noexcept {
    phrase out;
    out << "tenon.typing.Array[" << spell_elements(converts == conversions::none ? r : request()).view()
        << ", typing.Literal['" << spell(r, converts, takes_numbers, names).view() << "']]";
    if (!takes_numbers || !r.type) return out;
    return out << (r.type->is_complex() ? " | complex"
                   : r.type->code == abi::type_code::int_ || r.type->code == abi::type_code::uint ? " | int"
                   : r.type->code == abi::type_code::bool_ ? " | bool"
                                                           : " | float");
}

/// A result, which is an array of the caller's library: its words, and what they stand in.
template <std::size_t Size>
[[nodiscard]] constexpr auto annotated_result(std::string_view spelled) noexcept {
    constexpr std::string_view before = "typing.Annotated[typing.Any, '", after = "']";
    phrase out;
    out << before << spelled << after;
    return words<before.size() + Size + after.size()>(out);
}

}  // namespace tenon::bind
