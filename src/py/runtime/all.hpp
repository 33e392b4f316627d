// src/py/runtime/all.hpp: the room of CPython as the rooms above see it: all of it, and of the rooms below.
#pragma once

#include "arguments.hpp"
#include "base.hpp"
#include "call.hpp"
#include "exceptions.hpp"
#include "interpreter.hpp"
#include "keep.hpp"
#include "nesting.hpp"
#include "without_gil.hpp"
