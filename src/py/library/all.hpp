// src/py/library/all.hpp: the room of what is known of array libraries as the rooms above see it: all of it,
// and of the rooms below.
#pragma once

#include "current_stream.hpp"
#include "gradient.hpp"
#include "numpy_abi.hpp"
#include "torch_kinds.hpp"
