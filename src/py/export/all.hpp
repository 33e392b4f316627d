// src/py/export/all.hpp: the way out as the rooms above see it: all of it, and of the rooms below.
#pragma once

#include <tenon/py/export.hpp>
#include <tenon/py/like.hpp>
#include <tenon/py/producer.hpp>
#include "../import/all.hpp"
#include "makers.hpp"
#include "numpy.hpp"
#include "protocols.hpp"
#include "tensor_type.hpp"
