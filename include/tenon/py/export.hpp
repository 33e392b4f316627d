// tenon/py/export.hpp: the way out: a tensor becomes a capsule, a producer object, or a class of your own
// does.
#pragma once

#include "../../../src/py/export/capsule.hpp"
#include "../../../src/py/export/producer_class.hpp"
#include "../../../src/py/export/producer_type.hpp"
