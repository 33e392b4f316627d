// tenon/bind/parameter.hpp: what a parameter type amounts to: a constant that the engine reads.
#pragma once

#include <cstdint>

#include <tenon/tensor/request.hpp>

namespace tenon::bind {

/// How far an argument may be converted.
enum class conversions : std::uint8_t { none, safe, narrowing };

/// What one array type asks for.
struct parameter_spec {
    request wanted;
    conversions converting = conversions::none;
    const char* words = "";   ///< the parameter, as signatures and messages have it
    const char* target = "";  ///< what a conversion makes of an argument: the words without "or convertible"
};

enum class parameter_kind : std::uint8_t {
    foreign,  ///< the binder's own business
    array,    ///< one of the arrays of `specs`, lent
    tensor,   ///< a tensor, kept: `specs` has what it is in words
    list,     ///< any sequence; its items are as the one part says
    mapping,  ///< text to what the one part says
    tuple,    ///< as many items as there are parts
    one_of,   ///< any of the parts
};

/// A parameter type, and those within it.
struct parameter_type {
    parameter_kind kind = parameter_kind::foreign;
    bool accepts_none = false;
    std::uint8_t count = 0;                        ///< of specs or parts
    const parameter_spec* const* specs = nullptr;  ///< the first that fits is taken
    const parameter_type* const* parts = nullptr;
};

/// A parameter of one function.
struct parameter {
    const char* name = nullptr;
    const parameter_type* type = nullptr;
    std::uint8_t stars = 0;  ///< 1 for *args, 2 for **kwargs
    bool has_default = false;
    bool is_keyword_only = false;
};

}  // namespace tenon::bind
