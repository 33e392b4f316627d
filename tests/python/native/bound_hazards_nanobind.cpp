// tests/python/native/bound_hazards_nanobind.cpp: what can go wrong around arguments, bound by nanobind.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tenon/bind/nanobind.hpp>

namespace binder = nanobind;

#include "bound_hazards_binders.hpp"

NB_MODULE(bound_hazards_nanobind, m) { hazards::bind_all(m); }
