// tenon/py/export.hpp: a checked tensor goes back to Python.
#pragma once

#include <tenon/py/export/capsule.hpp>
