// src/py/runtime/all.hpp: the room of CPython as the rooms above see it: all of it, and of the rooms below.
#pragma once

#include "arguments.hpp"
#include "attached.hpp"
#include "base.hpp"
#include "call.hpp"
#include "capsule_names.hpp"
#include "chained_object.hpp"
#include "copy.hpp"
#include "driver.hpp"
#include "exceptions.hpp"
#include "interpreter.hpp"
#include "keep.hpp"
#include "nesting.hpp"
#include "object_query.hpp"
#include "taken.hpp"
