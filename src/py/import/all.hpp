// src/py/import/all.hpp: the way in as the rooms above see it: all of it, and of the rooms below.
#pragma once

#include "ladder.hpp"
#include "placing.hpp"
