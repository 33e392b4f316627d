// tenon/bind/request.hpp: `tenon::array<T, Rank, Props...>`, the parameter type that states what a caller
// must pass; and with it everything but the binders.
#pragma once

#include <tenon/bind/array.hpp>
#include <tenon/bind/conversion.hpp>
// As tenon/py.hpp, but for the engine, which comes last of all.
#include <tenon/py/export.hpp>
#include <tenon/py/import.hpp>
#include <tenon/py/like.hpp>
#include <tenon/py/producer.hpp>
#include <tenon/py/python_error.hpp>
#include <tenon/py/raise.hpp>
#include <tenon/py/ref.hpp>
#include <tenon/tenon.hpp>
