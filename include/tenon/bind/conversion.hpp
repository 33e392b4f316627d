// tenon/bind/conversion.hpp: telling whoever wants to know that an argument was converted.
#pragma once

#include <tenon/py/python.hpp>

namespace tenon {

/// A conversion that was made for a parameter with `convert`: a copy of the caller's array.
struct conversion {
    PyObject* from;        ///< what the caller passed
    PyObject* to;          ///< what its library made of it
    const char* expected;  ///< the parameter in words
};

/// Called after each conversion, with the GIL held. An exception it leaves pending ends the call.
using conversion_hook = void (*)(const conversion&);

/// Says which function is told of conversions made in this extension module; null for none, as it is at
/// first. Returns the one before.
TENON_API conversion_hook set_conversion_hook(conversion_hook hook) noexcept;

/// A hook that warns: "tenon: an argument of type numpy.ndarray was copied to become float32[*]". Python's
/// filters decide whether that is shown, or raised.
TENON_API void warn_of_conversion(const conversion& c);

}  // namespace tenon
