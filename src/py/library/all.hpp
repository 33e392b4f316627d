// src/py/library/all.hpp: the room of what is known of array libraries as the rooms above see it: all of it,
// and of the rooms below.
#pragma once

#include <tenon/py/numpy_struct.hpp>
#include "../runtime/all.hpp"
#include "current_stream.hpp"
#include "gradient.hpp"
#include "library_of.hpp"
#include "numpy_abi.hpp"
#include "remedies.hpp"
#include "table.hpp"
#include "torch_kinds.hpp"
#include "torch_library.hpp"
