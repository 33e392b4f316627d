// tenon/bind/request.hpp: `tenon::array<T, Rank, Props...>`, the parameter type that states what a caller
// must pass.
#pragma once

#include <tenon/bind/array.hpp>
#include <tenon/bind/conversion.hpp>
#include <tenon/bind/properties.hpp>
#include <tenon/py/python_error.hpp>
