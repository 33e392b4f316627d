// tests/python/native/bound_nanobind.cpp: the shared functions and overloads, bound by nanobind.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tenon/bind/nanobind.hpp>

namespace binder = nanobind;

#include "bound_binders.hpp"

NB_MODULE(bound_nanobind, m) { bound::bind_all(m); }
