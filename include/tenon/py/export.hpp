// tenon/py/export.hpp: the way out: a tensor becomes a capsule, a producer object, or a class of your own
// does.
#pragma once

#include <tenon/py/export/capsule.hpp>
#include <tenon/py/export/producer_class.hpp>
#include <tenon/py/export/producer_type.hpp>
