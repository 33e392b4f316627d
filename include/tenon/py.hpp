// tenon/py.hpp: everything, Python included, in one include.
#pragma once

#include <tenon/py/export.hpp>
#include <tenon/py/import.hpp>
#include <tenon/py/like.hpp>
#include <tenon/tenon.hpp>
